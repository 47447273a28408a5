"""Audits and attacks: what a released model gives away at least, next to what is certified at most."""

from discreet.audit.attack import AttackReport, attack, split_for
from discreet.audit.bounds import Guesses, epsilon_of_errors, one_run_epsilon, proportion, refutes
from discreet.audit.duplicates import Duplicates, duplicates
from discreet.audit.game import CanaryAudit, CanaryGame, play, sampled_as
from discreet.audit.measures import Measures, measured
from discreet.audit.selection_bias import SelectionAudit, audit_selection
from discreet.audit.shadows import Subject

__all__ = [
    "AttackReport",
    "CanaryAudit",
    "CanaryGame",
    "Duplicates",
    "Guesses",
    "Measures",
    "SelectionAudit",
    "Subject",
    "attack",
    "audit_selection",
    "duplicates",
    "epsilon_of_errors",
    "measured",
    "one_run_epsilon",
    "play",
    "proportion",
    "refutes",
    "sampled_as",
    "split_for",
]
