import pyarrow.parquet as pq


def test_recipes_are_put_next_to_each_other_and_the_same_command_goes_on(discreet):
    command = (
        "compare --data digits --recipes dp-sgd dp-adam --epsilons 3 --seeds 1 --set releases=4 --output out"
    )
    answer = discreet(command)
    assert answer.code == 0
    assert "2 of 2 done" in answer.out
    assert "| dp-sgd |" in answer.out
    assert "| dp-adam |" in answer.out
    table = pq.read_table("out/results.parquet").to_pylist()
    assert [row["state"] for row in table] == ["done", "done"]
    assert all(2.0 < row["epsilon_certified"] <= 3.0 for row in table)
    again = discreet(command)
    assert again.code == 0
    assert "1 running" not in again.out
    assert discreet(f"{command} --seeds 2").err == (
        "discreet: out holds another comparison; choose another output folder\n"
    )


def test_a_cell_that_fails_is_told_and_makes_the_exit_code_1(discreet):
    words = "--epsilons 3 --seeds 1 --set expected_batch_size=9999 --output out"
    answer = discreet(f"compare --data digits --recipes dp-sgd {words}")
    assert answer.code == 1
    assert "1 failed" in answer.out
    assert "only 1438 records" in answer.out


def test_the_file_is_overridden_by_the_options(discreet, tmp_path):
    (tmp_path / "study.toml").write_text(
        'data = ["digits"]\nepsilons = [1.0, 3.0]\nseeds = 2\n[[methods]]\nrecipe = "dp-sgd"\n'
    )
    answer = discreet("compare --config study.toml --epsilons 2 --output out --dry-run")
    assert answer.code == 0
    names = [line.strip() for line in answer.out.splitlines()[1:]]
    assert [name.rsplit("-", 1)[0] for name in names] == ["dp-sgd-digits-2-1", "dp-sgd-digits-2-2"]
    assert not (tmp_path / "out").exists()


def test_what_is_wrong_is_told_in_one_line_and_nothing_is_written(discreet, tmp_path):
    for words, told in (
        ("--recipes dp-sgd --epsilons 1", "a comparison needs data"),
        ("--data digits --recipes dp-sgd --epsilons -1", "epsilon is -1.0; it is a finite number above 0"),
        ("--data digits --recipes nothing --epsilons 1", "recipe is 'nothing'"),
        ("--data digits --recipes dp-sgd --epsilons 1 --set seed=3", "seed stands among the settings"),
        ("--data digits --recipes dp-sgd --epsilons 1 --set lr=3", "there is no setting 'lr'"),
    ):
        answer = discreet(f"compare {words} --output out")
        assert answer.code == 2
        assert told in answer.err
        assert answer.err.count("\n") == 1
        assert not (tmp_path / "out").exists()
