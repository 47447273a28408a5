from discreet.bench import noise


def test_the_noise_benchmark_measures_every_case_and_prints_it(monkeypatch):
    monkeypatch.setattr(noise, "_CASES", (("mlp", (8,), 3, 16), ("linear", (8,), 3, 16)))
    costs = noise.run(turns=2)
    assert [cost.model for cost in costs] == ["mlp", "linear"]
    assert all(cost.secure > 0 and cost.gradients > 0 and 0 < cost.share < 1 for cost in costs)
    assert noise.table(costs).count("\n") == 3
