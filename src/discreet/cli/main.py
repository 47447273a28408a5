"""Which commands there are. Nothing heavy is imported before a command is chosen, so that help is instant."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from discreet import __version__

_EPILOG = """\
examples:
  discreet train digits --epsilon 3
  discreet train fashion-mnist --epsilon 3 --dry-run
  discreet data schema patients.csv --target outcome --output patients.toml
  discreet train patients.csv --schema patients.toml --epsilon 2
  discreet account --sample-rate 0.01 --noise-multiplier 1.1 --releases 5000
  discreet certificate runs/digits-1
"""

MECHANISMS = (
    "dp-sgd",
    "same-batch",
    "memory",
    "noisy-selection",
    "dpsur",
    "sa-dp-sgd",
    "dpsr-cg",
    "dpsgd-br",
)


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = _Parser(
        prog="discreet",
        description="Train PyTorch models with differential privacy, and say with proof\nwhat the result gives away.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"discreet {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _train(commands.add_parser("train", help="train a model privately and write its certificate"))
    _account(
        commands.add_parser("account", help="epsilon for given settings, or settings for a given epsilon")
    )
    _data(commands.add_parser("data", help="get a data set, or write a schema template for a table"))
    _certificate(commands.add_parser("certificate", help="recompute a run's certificate from its event log"))
    _recipes(commands.add_parser("recipes", help="list the recipes and their settings"))
    _compare(commands.add_parser("compare", help="recipes next to each other at the same certified epsilon"))
    _bench(commands.add_parser("bench", help="measure speed on this machine"))
    _audit(commands.add_parser("audit", help="show what a training gives away at least"))
    return top


def _train(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "data",
        nargs="?",
        help="a named data set (digits, mnist, ...), a CSV, Parquet or npz file, or an image folder",
    )
    add(
        "--config",
        type=Path,
        metavar="TOML",
        help="read settings from a file; the command line goes before it",
    )
    add(
        "--resume",
        type=Path,
        metavar="RUN",
        help="go on with a run that was interrupted; no other settings needed",
    )
    add("--dry-run", action="store_true", help="print the plan and what it costs, and stop")
    add("--quiet", action="store_true", help="print the result only")

    privacy = command.add_argument_group("privacy").add_argument
    privacy("--epsilon", type=float, help="the budget (default 3)")
    privacy("--delta", type=float, help="the budget's delta (default 1e-5)")
    privacy("--accounting", choices=["visible", "hidden"], help="which certified accounting ends the run")
    privacy(
        "--assume-trials-secret",
        action="store_true",
        default=None,
        help="promise that nobody learns how many trials there were, nor when; hidden accounting rests on it",
    )
    privacy(
        "--seed", type=int, help="repeatable randomness, for research: the certificate then is no guarantee"
    )

    recipe = command.add_argument_group("recipe (see `discreet recipes`)").add_argument
    recipe("--recipe", help="how to train (default dp-sgd)")
    recipe("--preset", help="settings by name; paper: those that the recipe's paper publishes for the data")
    recipe("--expected-batch-size", type=int, help="mean size of a Poisson batch, B = qN")
    recipe("--epochs", type=float, help="passes over the data")
    recipe("--releases", type=int, help="noisy gradients to release, instead of epochs")
    recipe("--noise-multiplier", type=float, help="sigma; calibrated to the budget when left out")
    recipe("--clip-norm", type=float, help="C, the most that one record contributes")
    recipe(
        "--clipping",
        choices=["flat", "layer-wise", "automatic", "scaled", "group-wise"],
        help="how gradients are clipped",
    )
    recipe("--learning-rate", type=float)
    recipe(
        "--learning-rate-schedule",
        metavar="KIND:NAME=X",
        help="such as cosine:end=0.1 or step:every=50,factor=0.5",
    )
    recipe("--noise-schedule", metavar="KIND:NAME=X", help="a factor on the noise multiplier")
    recipe("--clip-schedule", metavar="KIND:NAME=X", help="a factor on the clip norm")
    recipe(
        "--average", type=float, help="release an exponential moving average of the weights, with this decay"
    )
    recipe(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        help="any other setting of the recipe; may be repeated",
    )

    model = command.add_argument_group("features and model").add_argument
    model("--features", help="public features of the inputs, by name, such as scattering (default: none)")
    model(
        "--feature-option",
        action="append",
        metavar="NAME=VALUE",
        help="an option of the features; may be repeated",
    )
    model(
        "--no-feature-cache", action="store_true", default=None, help="keep no features on disk between runs"
    )
    model("--model", help="a network by name (default: one that suits the data)")
    model(
        "--model-option",
        action="append",
        metavar="NAME=VALUE",
        help="an option of the network; may be repeated",
    )

    records = command.add_argument_group("data").add_argument
    records(
        "--data-folder", type=Path, help="where data sets lie (default $DISCREET_DATA, then the cache folder)"
    )
    records("--target", help="the target column of a table, or the array of targets in an npz")
    records("--inputs", help="the array of inputs in an npz (default inputs)")
    records("--schema", type=Path, help="the schema of a table: public bounds and categories")
    records(
        "--classes",
        metavar="N|A,B",
        help="the classes of an npz or an image folder: how many, or their names",
    )
    records("--image-size", type=int, help="the side that images of a folder are scaled to (default 32)")
    records("--channels", type=int, help="3 to read images in colour (default), 1 for grey")
    records(
        "--public",
        type=Path,
        metavar="FILE",
        help="records to show accuracy on, in the same form as the data",
    )
    records("--declared", choices=["public", "non-private holdout"], help="what the --public records are")
    records(
        "--size-is-public",
        action="store_true",
        default=None,
        help="declare that the number of records is public",
    )
    records(
        "--no-evaluation", action="store_true", default=None, help="do not look at the evaluation records"
    )

    output = command.add_argument_group("output").add_argument
    output("--output", type=Path, metavar="FOLDER", help="a new folder for the run (default runs/DATA-N)")
    output("--marks", type=int, help="how often progress is written and accuracy taken (default 20)")
    output(
        "--checkpoint-seconds",
        type=float,
        help="time between two checkpoints (default 30; 0 after every release)",
    )
    output("--no-tensorboard", action="store_true", default=None, help="write no TensorBoard log")

    machine = command.add_argument_group("machine").add_argument
    machine("--device", help="where to compute (default: cuda where there is one, otherwise cpu)")
    machine("--threads", type=int, help="processor threads (default: torch's)")
    machine(
        "--microbatch", type=int, help="records whose gradients are held at once (default: as memory allows)"
    )
    command.set_defaults(run=_lazily("train", "train"))


def _account(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "mechanism",
        nargs="?",
        default="dp-sgd",
        choices=[*MECHANISMS, "papers"],
        metavar="mechanism",
        help=f"what is run: {', '.join(MECHANISMS)} (default dp-sgd); "
        "or papers: what the papers' published settings really cost",
    )
    add("--epsilon", type=float, help="the target, when noise or releases are wanted")
    add("--delta", type=float, default=1e-5, help="default 1e-5")
    add(
        "--accounting",
        choices=["visible", "hidden"],
        default="visible",
        help="which certified accounting is held to the target",
    )
    add("--sample-rate", type=float, help="q; or give the next two")
    add("--examples", type=int, help="N")
    add("--expected-batch-size", type=float, help="B = qN")
    add("--noise-multiplier", type=float, help="sigma; left out, the smallest that keeps the target")
    add("--releases", type=int, help="T, released updates; left out, the most that keep the target")
    add("--epochs", type=float, help="T as passes over the data")
    add("--trials", type=int, help="how many trials the releases take, where trials can be rejected")

    gate = command.add_argument_group("selective release").add_argument
    gate("--gate-rate", type=float, help="q_v, the rate of the validation batch; or")
    gate("--gate-batch-size", type=float, help="its expected size")
    gate("--gate-multiplier", type=float, help="sigma_v, the noise on the score")
    gate("--gate-threshold", type=float, help="beta (default -1)")
    gate("--gate-span", type=float, help="dpsr-cg: the clipping interval in sensitivities (default 1)")
    gate(
        "--one-sided",
        action="store_true",
        default=None,
        help="dpsr-cg: a record can only lower the acceptance",
    )
    gate(
        "--private-reference", action="store_true", default=None, help="dpsr-cg: compare with released scores"
    )
    gate("--coldness", type=float, help="sa-dp-sgd: the inverse temperature in units of 1/C_v")
    gate("--candidates", type=int, help="dpsgd-br: the size of the buffer (default 2)")
    gate("--tie", type=float, help="dpsgd-br: theta in units of C_v (default 0)")
    gate(
        "--charge-all",
        action="store_true",
        default=None,
        help="dpsgd-br, hidden: charge every accepted candidate",
    )

    others = command.add_argument_group("other mechanisms").add_argument
    others(
        "--also",
        type=float,
        action="append",
        metavar="SIGMA",
        help="same-batch: a further Gaussian's multiplier",
    )
    others("--fresh-weight", type=float, help="memory: beta, the weight of the fresh sum")
    others("--groups", type=int, help="memory: layer groups that are clipped and noised apart (default 1)")
    others("--pure-epsilon", type=float, help="noisy-selection: the epsilon of one selection")
    add("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_lazily("account", "account"))


def _data(command: argparse.ArgumentParser) -> None:
    commands = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    get = commands.add_parser("get", help="download a data set from its original address")
    get.add_argument("name", help="mnist, fashion-mnist, cifar-10, cifar-100, svhn, imdb, adult")
    get.add_argument("--folder", type=Path, help="where to (default $DISCREET_DATA, then the cache folder)")
    get.add_argument(
        "--mirror", metavar="URL", help="fetch URL/NAME/FILE instead; the checksums stay the same"
    )
    get.set_defaults(run=_lazily("data", "get"))
    listing = commands.add_parser("list", help="the data sets that have a name, and which are here")
    listing.set_defaults(run=_lazily("data", "listing"))
    schema = commands.add_parser("schema", help="write a schema template for a CSV or Parquet file")
    schema.add_argument("table", type=Path)
    schema.add_argument("--target", required=True, help="the target column")
    schema.add_argument("--output", type=Path, help="the file to write (default: print)")
    schema.set_defaults(run=_lazily("data", "schema"))


def _certificate(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="RUN", help="the folder of a run")
    command.add_argument("--json", action="store_true", help="print the certificate as JSON")
    command.add_argument(
        "--copies", type=int, metavar="K", help="also say what holds for a record that occurs K times"
    )
    command.set_defaults(run=_lazily("certificate", "certificate"))


def _compare(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--config",
        type=Path,
        metavar="TOML",
        help="read the comparison from a file; the options go before it",
    )
    add("--data", nargs="+", metavar="NAME", help="data sets")
    add("--recipes", nargs="+", metavar="RECIPE", help="recipes with their defaults, or as --set says")
    add("--epsilons", nargs="+", type=float, metavar="X", help="certified epsilons, all recipes at each")
    add("--seeds", type=int, metavar="N", help="how often, each time with other draws (default 3)")
    add("--set", action="append", metavar="NAME=VALUE", help="a setting of every training; may be repeated")
    add(
        "--output",
        type=Path,
        metavar="FOLDER",
        required=True,
        help="a folder; the same one goes on where it was",
    )
    add("--workers", type=int, metavar="N", help="trainings at a time (default: as many as there are cores)")
    add("--dry-run", action="store_true", help="name the trainings, and stop")
    add("--quiet", action="store_true", help="print nothing")
    command.set_defaults(run=_lazily("compare", "compare"))


def _audit(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("subject", nargs="?", help="a run's folder, a TOML file with settings, or data as for train")
    add(
        "--by",
        choices=["canaries", "black-box", "white-box", "lira", "rmia", "duplicates"],
        default="canaries",
        help="how to audit (default canaries)",
    )
    add("--confidence", type=float, default=0.95, help="of each lower bound (default 0.95)")
    add("--seed", type=int, default=0, help="the audit's key; one seed gives one audit (default 0)")
    add("--output", type=Path, metavar="FOLDER", help="where to write (default audits/NAME)")
    add("--json", action="store_true", help="print the result as JSON")

    training = command.add_argument_group("what is audited, where the subject does not say").add_argument
    training("--recipe", help="how to train (default dp-sgd)")
    training("--preset", help="settings by name, as for train")
    training("--epsilon", type=float, help="the budget (default 3)")
    training("--delta", type=float, help="the budget's delta (default 1e-5)")
    training("--accounting", choices=["visible", "hidden"], help="which certified accounting")
    training("--model", help="a network by name")
    training("--features", help="public features of the inputs, by name")
    training("--data-folder", type=Path, help="where data sets lie")
    training("--set", action="append", metavar="NAME=VALUE", help="any other setting; may be repeated")

    canaries = command.add_argument_group("canaries").add_argument
    canaries("--canaries", type=int, default=30_000, help="how many (default 30000)")
    canaries("--examples", type=int, help="the records that batch sizes refer to (default: the subject's)")

    attacks = command.add_argument_group("attacks").add_argument
    attacks("--shadows", type=int, default=16, help="models that lira and rmia train (default 16)")
    attacks("--records", type=int, help="use so many of the records (default all)")
    attacks("--control", action="store_true", help="attack models trained without privacy instead")
    attacks("--control-epochs", type=int, default=40, help="how long those are trained (default 40)")
    attacks("--processes", type=int, help="models trained at a time (default: as there are cores)")
    command.set_defaults(run=_lazily("audit", "audit"))


def _bench(command: argparse.ArgumentParser) -> None:
    commands = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    speed = commands.add_parser("speed", help="a private step against a plain one, next to other libraries")
    speed.add_argument("settings", nargs="*", metavar="MODEL:BATCH", help="such as M1:2048 (default: all)")
    speed.add_argument("--no-memory", action="store_true", help="do not measure peak memory")
    speed.add_argument("--output", type=Path, metavar="JSON", help="write the measurements to a file")
    speed.set_defaults(run=_lazily("bench", "speed"), rounds=11)
    noise = commands.add_parser("noise", help="the noise's share of a release")
    noise.set_defaults(run=_lazily("bench", "noise"), rounds=7)
    accounting = commands.add_parser("accounting", help="how long the accountant takes")
    accounting.set_defaults(run=_lazily("bench", "accounting"), rounds=5)
    recipes = commands.add_parser("recipes", help="a release of each recipe against one of DP-SGD")
    recipes.add_argument("models", nargs="*", metavar="MODEL", help="such as cnn-mnist (default: all)")
    recipes.add_argument("--recipes", nargs="+", metavar="RECIPE", help="measure these only")
    recipes.set_defaults(run=_lazily("bench", "recipes"), rounds=15)
    for each in (speed, noise, accounting, recipes):
        each.add_argument("--rounds", type=int, help="how often everything is measured; medians are shown")


def _recipes(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", nargs="?", help="show the settings of one recipe")
    command.set_defaults(run=_lazily("recipes", "recipes"))


def _lazily(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        return int(getattr(import_module(f"discreet.cli.{module}"), function)(arguments))

    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when it did what was asked, 2 when something has to change first."""
    parsed = parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except BrokenPipeError:
        return _without_reader()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return _complain("the disk is full; make room. A run that had begun goes on with --resume")
        return _complain(f"{error.filename or 'a file'}: {error.strerror or error}")
    except ValueError as error:  # what a person has to change: UserError is one of them
        return _complain(str(error))
    except KeyboardInterrupt as stop:
        return _complain(str(stop) or "interrupted", 130)


def _complain(message: str, code: int = 2) -> int:
    """One line, whatever the message is made of."""
    print(f"discreet: {' '.join(message.split())}", file=sys.stderr)
    return code


def _without_reader() -> int:
    """Nobody reads what is printed any more (`discreet recipes | head -1`): no reason to complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
