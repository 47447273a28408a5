import dataclasses
import json
import re
from html.parser import HTMLParser

import pytest

from discreet.accounting.budget import Accounting, Budget
from discreet.accounting.certificate import CERTIFICATE_NAME, Certificate, TrainedOn
from discreet.accounting.certification import build_certificate, verify_certificate
from discreet.accounting.composition import epsilon
from discreet.accounting.events import Gaussian, PoissonGaussian
from discreet.accounting.filter import open_filter
from discreet.accounting.history import ChargePlan, LogHeader
from discreet.accounting.log import EventLog, read_log
from discreet.accounting.page import certificate_page
from discreet.errors import CorruptFile, UserError

RELEASE = PoissonGaussian(sample_rate=0.01, noise_multiplier=1.5)
STATISTICS = Gaussian(noise_multiplier=50.0)
PLAN = ChargePlan(releases=((RELEASE, 1000),), once=(("statistics", STATISTICS),))
HEADER = LogHeader(
    budget=Budget(epsilon=1.0, delta=1e-5), accounting=Accounting.VISIBLE, secure_noise=True, plan=PLAN
)
ABOUT = {
    "recipe": "DP-SGD",
    "settings": {"clip_norm": 1.0, "schedule": ["constant", 0.5]},
    "trained_on": TrainedOn(
        name="Digits & <letters>", records=60_000, records_public=True, schema_hash="ab12"
    ),
    "sampler": "Poisson, rate 0.01",
    "noise_source": "ChaCha20 under a secret key",
}


def run(folder, charged, header=HEADER):
    with EventLog.create(folder, header) as log:
        guard = open_filter(header, log)
        guard.charge_once("statistics", STATISTICS)
        guard.charge(0, RELEASE, count=charged)
    return read_log(folder)


def certified(folder, charged=1000, header=HEADER, **more):
    certificate = build_certificate(run(folder, charged, header), **(ABOUT | more))
    certificate.save(folder)
    return certificate


def test_json_gives_the_certificate_back(tmp_path):
    certificate = certified(tmp_path)
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert Certificate.from_json((tmp_path / CERTIFICATE_NAME).read_text()) == certificate


def test_epsilon_is_that_of_all_charges_at_each_delta(tmp_path):
    certificate = certified(tmp_path)
    assert certificate.guarantee
    assert {each.delta for each in certificate.epsilons} == {1e-5, 1e-6, 1e-7, 60_000**-1.1}
    for each in certificate.epsilons:
        assert each.epsilon == epsilon([(RELEASE, 1000), (STATISTICS, 1)], each.delta)
    assert certificate.epsilon == certificate.epsilon_visible == certificate.epsilons[0].epsilon
    assert certificate.epsilon_claimed is None


def test_a_run_that_ended_early_certifies_its_whole_plan(tmp_path):
    certificate = certified(tmp_path, charged=700, executed=640)
    assert certificate.ended_early
    assert certificate.epsilon == epsilon(PLAN.charges(), 1e-5)
    assert certificate.epsilon_of_what_ran == epsilon([(RELEASE, 640), (STATISTICS, 1)], 1e-5)
    assert certificate.epsilon_of_what_ran < certificate.epsilon
    assert "did not depend on the data" in certificate.epsilon_of_what_ran_needs


def test_seeded_noise_is_no_guarantee_and_says_why(tmp_path):
    certificate = certified(tmp_path, header=dataclasses.replace(HEADER, secure_noise=False))
    assert not certificate.guarantee
    assert "fixed seed" in certificate.why_no_guarantee
    assert "No guarantee" in certificate_page(certificate)
    assert verify_certificate(tmp_path) == []


def test_under_hidden_accounting_the_secrecy_of_trials_is_an_assumption(tmp_path):
    hidden = dataclasses.replace(HEADER, accounting=Accounting.HIDDEN)
    certificate = certified(tmp_path, header=hidden, charges_visible=[(RELEASE, 3000)], claimed_epsilon=0.5)
    assert any("stays secret" in sentence for sentence in certificate.assumptions)
    assert certificate.epsilon == certificate.epsilon_hidden
    assert certificate.epsilon_visible == epsilon([(RELEASE, 3000)], 1e-5)
    assert certificate.epsilon_claimed == 0.5
    assert verify_certificate(tmp_path) == []


def test_under_a_renyi_filter_the_curve_is_certified_and_no_prefix(tmp_path):
    header = dataclasses.replace(
        HEADER, calculus="rdp", filter="renyi-curve", budget=Budget(epsilon=2.0, delta=1e-5)
    )
    certificate = certified(tmp_path, charged=400, header=header)
    assert certificate.epsilon == pytest.approx(epsilon(PLAN.charges(), 1e-5, calculus="rdp"), rel=1e-6)
    assert certificate.epsilon_of_what_ran is None
    assert certificate.releases_planned is None
    assert verify_certificate(tmp_path) == []


def test_the_certificate_is_recomputed_from_the_log_alone(tmp_path):
    certified(tmp_path, charged=700, claimed_epsilon=0.7, assumptions=["The public features are public."])
    assert verify_certificate(tmp_path) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epsilon", 0.5),
        ("epsilon", None),
        ("epsilon_visible", 0.5),
        ("epsilon_of_what_ran", 0.1),
        ("budget_epsilon", 2.0),
        ("guarantee", False),
        ("releases_charged", 10),
        ("releases_executed", 701),
        ("releases_planned", 700),
        ("ended_early", False),
        ("accounting", "hidden"),
        ("neighbours", "Two data sets are neighbours if they are equal."),
        ("threat_model", []),
        ("assumptions", []),
        ("charged", []),
        ("planned", []),
    ],
)
def test_every_field_that_is_tampered_with_is_named(tmp_path, field, value):
    certified(tmp_path, charged=700)
    record = json.loads((tmp_path / CERTIFICATE_NAME).read_text())
    assert record[field] != value
    record[field] = value
    (tmp_path / CERTIFICATE_NAME).write_text(json.dumps(record))
    assert any(difference.startswith(f"{field}:") for difference in verify_certificate(tmp_path))


def test_a_charge_more_in_the_log_shows(tmp_path):
    certified(tmp_path, charged=700)
    with EventLog.resume(tmp_path) as log:
        log.charge(700, RELEASE)
    names = {difference.split(":")[0] for difference in verify_certificate(tmp_path)}
    assert names == {"releases_charged", "charged"}


def test_files_that_are_not_certificates_are_refused(tmp_path):
    with pytest.raises(UserError, match="has no certificate yet"):
        verify_certificate(tmp_path)
    record = json.loads(certified(tmp_path).to_json())
    for spoiled in (
        {**record, "schema": 2},
        {**record, "more": 1},
        {"schema": 1},
        {**record, "trained_on": {}},
    ):
        with pytest.raises(CorruptFile, match="not a certificate"):
            Certificate.from_json(json.dumps(spoiled))
    with pytest.raises(ValueError, match="executed must be between 0 and the 1000"):
        build_certificate(read_log(tmp_path), **ABOUT, executed=1001)


class Outline(HTMLParser):
    """Collects what a page is made of, and notices tags that are not closed."""

    VOID = frozenset({"meta", "link", "br", "img"})

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text, self.attributes = [], [], "", []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_is_whole_self_contained_and_says_what_matters(tmp_path):
    certificate = certified(tmp_path, charged=700, claimed_epsilon=0.7)
    page = certificate_page(certificate)
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert not {"script", "img", "link", "iframe"} & set(outline.tags)
    assert not any(name in ("src", "href") for name, _ in outline.attributes)
    assert ("lang", "en") in outline.attributes
    assert {"main", "h1", "h2", "caption", "th"} <= set(outline.tags)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    for sentence in (*certificate.assumptions, *certificate.threat_model, certificate.neighbours):
        assert sentence in outline.text
    for part in (
        "Digits & <letters>",
        "not a guarantee",
        "ended early",
        "discreet certificate RUN",
        "ChaCha20",
    ):
        assert part in outline.text
    assert not re.search(r"\$\w", page)


def test_printed_bounds_are_rounded_up(tmp_path):
    certificate = certified(tmp_path)
    shown = re.search(r"Guarantee: epsilon ([\d.]+) at", certificate_page(certificate))
    assert certificate.epsilon <= float(shown[1]) <= certificate.epsilon + 1e-3


def test_without_a_finite_epsilon_there_is_no_guarantee(tmp_path):
    certificate = dataclasses.replace(certified(tmp_path), epsilon=None)
    assert "No finite bound holds" in certificate_page(certificate)
