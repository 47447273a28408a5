import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from discreet.accounting.certificate import Certificate
from discreet.accounting.rounding import rounded_up
from discreet.errors import CorruptFile
from discreet.report import run_page
from discreet.training.folder import RunFolder

VOID = {"meta"}


class Strict(HTMLParser):
    """Elements in the order in which they open; complains of any that is not closed where it has to be."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"{tag} has an attribute twice"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{tag} closes nothing"
        assert self.open.pop() == tag, f"{tag} is closed out of turn"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_the_page_is_well_formed_and_its_references_lead_somewhere(run: RunFolder) -> None:
    page = Strict(run_page(run))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "for"):
            assert set(attributes.get(name, "").split()) <= set(ids)
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids


def test_the_strict_reader_notices_a_broken_page(run: RunFolder) -> None:
    with pytest.raises(AssertionError):
        Strict(run_page(run).replace("</figure>", "", 1))


def test_names_with_markup_in_them_are_text(make_run, tmp_path: Path) -> None:
    name = "\"><script>alert('x')<b>&amp;"
    folder = make_run(tmp_path / "run", data=name)
    page = Strict(run_page(folder))
    assert len(page.all("script")) == 1
    assert name in page.text


def test_nothing_is_fetched_and_only_the_pages_own_script_runs(run: RunFolder) -> None:
    text = run_page(run)
    page = Strict(text)
    assert not {"link", "img", "iframe", "object", "embed"} & {tag for tag, _ in page.elements}
    assert not re.search(r"https?://|url\(|@import", text)
    assert not any(name.startswith("on") or name == "style" for _, found in page.elements for name in found)
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    assert "default-src 'none'" in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_every_plot_has_a_line_a_description_and_a_table_of_its_numbers(run: RunFolder) -> None:
    figures = re.findall(r"<figure>.*?</figure>", run_page(run), flags=re.DOTALL)
    assert len(figures) == 4
    for figure in figures:
        part = Strict(figure)
        points = json.loads(next(each["data-points"] for each in part.all("svg") if "data-points" in each))
        line = next(each["points"] for each in part.all("polyline") if each["class"] == "line")
        assert len(line.split()) == len(points) > 2
        assert len({y for _, y, _ in points}) > 2, "a flat line says that the plot shows nothing"
        assert all(0 <= place <= 100 for x, y, _ in points for place in (x, y))
        assert part.all("desc")
        assert figure.count("<tr>") == len(points) + 1


def test_each_measured_point_has_a_dot(run: RunFolder) -> None:
    figures = re.findall(r"<figure>.*?</figure>", run_page(run), flags=re.DOTALL)
    for name in ("budget", "accuracy", "exchange"):
        (figure,) = [each for each in figures if f'<svg id="{name}"' in each]
        dots = [each for each in Strict(figure).all("circle") if each["class"] == "dot"]
        assert len(dots) == (21 if name == "budget" else 20)


def test_without_evaluation_records_there_is_no_word_of_accuracy(make_run, tmp_path: Path) -> None:
    page = Strict(run_page(make_run(tmp_path / "run", accuracy=False)))
    assert "Budget spent" in page.text
    assert "ccuracy" not in page.text


def test_a_run_that_ended_before_its_first_mark_still_has_a_page(make_run, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    folder.metrics.unlink()
    assert "How the run went" not in Strict(run_page(folder)).text


def test_a_seeded_run_says_first_that_there_is_no_guarantee(make_run, tmp_path: Path) -> None:
    text = Strict(run_page(make_run(tmp_path / "run", seed=1))).text
    assert "No guarantee." in text.partition("What was done")[0]
    assert "differentially private" not in text.partition("What was done")[0]


def test_a_run_with_a_secret_key_states_its_guarantee_first(run: RunFolder) -> None:
    text = Strict(run_page(run)).text
    stated = Certificate.from_json(run.certificate.read_text()).epsilon
    assert f"({rounded_up(stated)}, 1e-5)-differentially private" in text.partition("What was done")[0]
    assert "No guarantee" not in text


def test_the_claimed_number_is_labelled_as_no_guarantee(run: RunFolder) -> None:
    (row,) = [row for row in re.findall(r"<tr>.*?</tr>", run_page(run)) if "claimed" in row]
    assert "not a guarantee" in row


def test_only_known_fields_of_the_marks_reach_the_page(run: RunFolder) -> None:
    lines = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    run.metrics.write_text("".join(json.dumps({**line, "loss": 0.7654321}) + "\n" for line in lines))
    assert "7654321" not in run_page(run)


def test_the_same_search_finds_a_number_that_is_on_the_page(run: RunFolder) -> None:
    lines = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    run.metrics.write_text("".join(json.dumps({**line, "epsilon": 0.7654321}) + "\n" for line in lines))
    assert "0.7655" in run_page(run)


def test_the_private_folder_is_not_opened(run: RunFolder) -> None:
    run.private.rmdir()
    assert run_page(run)


def test_a_mark_told_twice_by_a_resumed_run_is_drawn_once(run: RunFolder) -> None:
    before = run_page(run)
    lines = run.metrics.read_text().splitlines(keepends=True)
    run.metrics.write_text("".join(lines + lines[5:8]))
    assert run_page(run) == before


@pytest.mark.parametrize("damage", ["[1, 2]\n", "{\n", '{"release": 1}\n'])
def test_damaged_metrics_are_named(run: RunFolder, damage: str) -> None:
    run.metrics.write_text(run.metrics.read_text() + damage)
    with pytest.raises(CorruptFile, match=r"metrics\.jsonl line 21"):
        run_page(run)


def test_a_folder_without_certificate_is_no_finished_run(run: RunFolder) -> None:
    run.certificate.unlink()
    with pytest.raises(CorruptFile, match=r"certificate\.json is missing"):
        run_page(run)


def test_a_run_that_ended_early_says_what_its_guarantee_is(make_run, tmp_path: Path) -> None:
    text = Strict(run_page(make_run(tmp_path / "run", executed=40))).text
    assert "ended after 40 of 100 planned releases" in text
    assert "The guarantee is that of the whole plan." in text


def with_memory(run: RunFolder, told: list[dict[str, float]]) -> Strict:
    """The page of a run with a memory that told these figures at its last marks."""
    settings = json.loads(run.settings.read_text())
    settings["plan"]["memory"] = {"kind": "spectral", "fresh_weight": 0.7, "sum_weight": 0.7, "window": 4}
    run.settings.write_text(json.dumps(settings))
    marks = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    for mark, figures in zip(marks[-len(told) :], told, strict=True):
        mark["told"] = figures
    run.metrics.write_text("".join(json.dumps(mark) + "\n" for mark in marks))
    return Strict(run_page(run))


def test_a_memory_is_told_of_by_depth_share_and_stage(run: RunFolder) -> None:
    first = {"memory depth": 1.0, "memory ratio": 0.01, "rho stem": 2.5, "lambda stem": 0.0}
    last = {"memory depth": 1.9, "memory ratio": 0.02, "rho stem": 7.25, "lambda stem": 0.465}
    page = with_memory(run, [first, last])
    assert "What past releases contributed" in page.text
    assert "up to 3 before it" in page.text
    assert "the sum was multiplied by 0.7" in page.text
    for figure in ("Effective memory depth", "The memory's share", "7.25", "0.465"):
        assert figure in page.text
    assert "Marginal" not in page.text


def test_a_marginal_cost_is_never_shown_without_its_label(run: RunFolder) -> None:
    page = with_memory(run, [{"marginal epsilon (not a guarantee)": 0.4}] * 2)
    assert "Marginal cost of one layer: not a guarantee" in page.text


def test_a_run_without_a_memory_says_nothing_of_one(run: RunFolder) -> None:
    assert "past releases" not in Strict(run_page(run)).text
