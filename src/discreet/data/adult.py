"""The Adult census data of UCI, with a public schema written from `adult.names` and the census form."""

from __future__ import annotations

from pathlib import Path

from discreet.data.folders import find_file
from discreet.data.raw_table import read_csv
from discreet.data.records import Splits
from discreet.data.schema import Categorical, Numeric, TableSchema
from discreet.data.table import encode

COLUMNS = (
    *(
        "age",
        "workclass",
        "fnlwgt",
        "education",
        "education-num",
        "marital-status",
        "occupation",
        "relationship",
    ),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
)
COUNTRIES = """
    United-States, Cambodia, England, Puerto-Rico, Canada, Germany, Outlying-US(Guam-USVI-etc), India, Japan,
    Greece, South, China, Cuba, Iran, Honduras, Philippines, Italy, Poland, Jamaica, Vietnam, Mexico,
    Portugal, Ireland, France, Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, Hungary, Guatemala,
    Nicaragua, Scotland, Thailand, Yugoslavia, El-Salvador, Trinadad&Tobago, Peru, Hong, Holand-Netherlands
"""
EDUCATION = """
    Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, 7th-8th, 12th, Masters,
    1st-4th, 10th, Doctorate, 5th-6th, Preschool
"""
OCCUPATIONS = """
    Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty, Handlers-cleaners,
    Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving, Priv-house-serv, Protective-serv,
    Armed-Forces
"""


def schema() -> TableSchema:
    """The public schema: categories as `adult.names` lists them, bounds from what the columns mean.

    `adult.names` gives ages over 16, hours over 0 and 16 levels of education. The other bounds are round
    numbers that amounts are clamped to. They were chosen by hand and declared public; none was computed from
    the rows.
    """
    return TableSchema(
        target="income",
        classes=("<=50K", ">50K"),
        columns={
            "age": Numeric(bounds=(16, 90)),
            "workclass": _listed(
                "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay, "
                "Never-worked"
            ),
            "fnlwgt": Numeric(bounds=(0, 1_000_000)),
            "education": _listed(EDUCATION),
            "education-num": Numeric(bounds=(1, 16)),
            "marital-status": _listed(
                "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent, "
                "Married-AF-spouse"
            ),
            "occupation": _listed(OCCUPATIONS),
            "relationship": _listed("Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried"),
            "race": _listed("White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black"),
            "sex": _listed("Female, Male"),
            "capital-gain": Numeric(bounds=(0, 20_000)),
            "capital-loss": Numeric(bounds=(0, 5_000)),
            "hours-per-week": Numeric(bounds=(0, 99)),
            "native-country": _listed(COUNTRIES),
        },
    )


def load(folder: Path) -> Splits:
    """32,561 rows to train on and 16,281 as the declared non-private holdout; "?" is an unknown category."""
    public_schema = schema()
    train = read_csv(find_file(folder, "adult.data"), column_names=COLUMNS)
    # The test file opens with a comment line and ends every class with a full stop.
    test = read_csv(find_file(folder, "adult.test"), column_names=COLUMNS, skip_lines=1)
    dotted = {f"{income}.": income for income in public_schema.classes}
    test = test.with_replaced("income", dotted)
    return Splits(
        train=encode(train, public_schema, name="adult", size_is_public=True),
        public=encode(test, public_schema, name="adult test split", size_is_public=True),
        declared="non-private holdout",
    )


def _listed(categories: str) -> Categorical:
    return Categorical(categories=tuple(each.strip() for each in categories.split(",")))
