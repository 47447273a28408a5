from discreet.bench import accounting


def test_every_question_is_asked_with_new_settings_each_time(monkeypatch):
    asked = []
    monkeypatch.setattr(accounting, "_QUESTIONS", {"one": asked.append, "two": asked.append})
    timings = accounting.run(turns=3)
    assert [timing.question for timing in timings] == ["one", "two"]
    assert len(set(asked)) == 3
    assert accounting.table(timings).count("\n") == 3


def test_the_questions_can_be_answered():
    for question in ("DP-SGD: noise for a budget", "DPSUR, one bound at all orders, hidden"):
        assert accounting._QUESTIONS[question](1.01) is not None
