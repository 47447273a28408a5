"""Privacy accounting: events, certified bounds, filters, calibration, certificates. NumPy and SciPy, no torch."""

from discreet.accounting.account import Account, account, most_within, noise_for, rate
from discreet.accounting.budget import Accounting, Budget
from discreet.accounting.calibration import calibrate_noise, calibrate_releases
from discreet.accounting.certificate import Certificate, TrainedOn
from discreet.accounting.certification import build_certificate, verify_certificate
from discreet.accounting.composition import delta, epsilon, profile
from discreet.accounting.events import (
    Event,
    Gaussian,
    PoissonGaussian,
    PoissonPureDP,
    PureDP,
    Several,
    UnknownEventError,
    event_from_json,
    joint_multiplier,
    register_event,
)
from discreet.accounting.filter import PlannedFilter, PrivacyFilter, RenyiFilter, open_filter
from discreet.accounting.history import ChargePlan, History, LogHeader
from discreet.accounting.log import EventLog, read_log
from discreet.accounting.page import certificate_page
from discreet.accounting.profiles import Profile, privacy_profile
from discreet.accounting.rdp import rdp_curve

__all__ = [
    "Account",
    "Accounting",
    "Budget",
    "Certificate",
    "ChargePlan",
    "Event",
    "EventLog",
    "Gaussian",
    "History",
    "LogHeader",
    "PlannedFilter",
    "PoissonGaussian",
    "PoissonPureDP",
    "PrivacyFilter",
    "Profile",
    "PureDP",
    "RenyiFilter",
    "Several",
    "TrainedOn",
    "UnknownEventError",
    "account",
    "build_certificate",
    "calibrate_noise",
    "calibrate_releases",
    "certificate_page",
    "delta",
    "epsilon",
    "event_from_json",
    "joint_multiplier",
    "most_within",
    "noise_for",
    "open_filter",
    "privacy_profile",
    "profile",
    "rate",
    "rdp_curve",
    "read_log",
    "register_event",
    "verify_certificate",
]
