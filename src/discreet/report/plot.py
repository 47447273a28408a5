"""Plots as inline SVG that fit any width, with a text alternative and a table of their numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from discreet.report.markup import Content, Html, element, table
from discreet.report.numbers import plain, ticks


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What is measured along one side of a plot.

    Args:
        label: its name, with the unit.
        show: how a value is written.
        include: values that the axis covers besides the data's.
    """

    label: str
    show: Callable[[float], str] = plain
    include: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Line:
    """Points joined by a line; `dots` are drawn where each point was measured."""

    name: str
    points: Sequence[tuple[float, float]]
    dots: bool = True


@dataclass(frozen=True, kw_only=True)
class Level:
    """A value to compare with: a dashed line across the plot."""

    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One line over two axes.

    Positions are written as percentages of the drawing's area, so that the picture stretches with the page
    while letters, dots and strokes keep their size.

    Args:
        name: an identifier, unique on the page.
        title: what the plot shows.
        summary: the same in words, for those who do not see it.
        x: the horizontal axis.
        y: the vertical axis.
        line: the data.
        level: a value to compare with.
        diagonal: a name for the line y = x, where it means something.
    """

    name: str
    title: str
    summary: str
    x: Axis
    y: Axis
    line: Line
    level: Level | None = None
    diagonal: str | None = None

    def figure(self) -> Html:
        """The plot with its title, its text alternative and its numbers."""
        return element(
            "figure",
            element("figcaption", element("strong", self.title), element("span", self.summary)),
            element("div", self._drawing(), class_="plot"),
            element("output", "", class_="reading", for_=self.name, aria_live="polite"),
            element("details", element("summary", "The numbers"), self._numbers()),
        )

    def _drawing(self) -> Html:
        xs, ys = self._ticks()
        places = [(_place(x, xs), 100 - _place(y, ys)) for x, y in self.line.points]
        readings = [
            [round(px, 2), round(py, 2), f"{self.x.label} {self.x.show(x)}: {self.y.label} {self.y.show(y)}"]
            for (px, py), (x, y) in zip(places, self.line.points, strict=True)
        ]
        return element(
            "svg",
            element("title", self.title, id=f"{self.name}-title"),
            element("desc", self.summary, id=f"{self.name}-desc"),
            self._axes(xs, ys),
            self._diagonal(xs, ys),
            self._level(ys),
            _stretched(" ".join(f"{px:.2f},{py:.2f}" for px, py in places), "line"),
            [element("circle", class_="dot", cx=f"{px:.2f}%", cy=f"{py:.2f}%", r=3.5) for px, py in places]
            if self.line.dots
            else None,
            element("circle", class_="cursor", cx="0%", cy="0%", r=6),
            element("text", self.x.label, class_="label", x="50%", y="100%", dy=40, text_anchor="middle"),
            element("text", self.y.label, class_="label", x="0%", y="0%", dx=-44, dy=-14),
            id=self.name,
            role="img",
            tabindex="0",
            aria_labelledby=f"{self.name}-title {self.name}-desc",
            data_points=json.dumps(readings),
        )

    def _ticks(self) -> tuple[list[float], list[float]]:
        xs = [x for x, _ in self.line.points] + list(self.x.include)
        ys = [y for _, y in self.line.points] + list(self.y.include)
        ys += [self.level.value] if self.level else []
        return ticks(min(xs), max(xs)), ticks(min(ys), max(ys))

    def _axes(self, xs: list[float], ys: list[float]) -> Html:
        across = [
            [
                element("line", class_="grid", x1="0%", x2="100%", y1=at, y2=at),
                element(
                    "text", self.y.show(y), class_="tick", x="0%", y=at, dx=-8, dy="0.35em", text_anchor="end"
                ),
            ]
            for y in ys
            for at in [f"{100 - _place(y, ys):.2f}%"]
        ]
        along = [
            element(
                "text",
                self.x.show(x),
                class_="tick",
                x=f"{_place(x, xs):.2f}%",
                y="100%",
                dy=20,
                text_anchor="middle",
            )
            for x in xs
        ]
        return element("g", across, along, aria_hidden="true")

    def _level(self, ys: list[float]) -> Html | None:
        if self.level is None:
            return None
        at = f"{100 - _place(self.level.value, ys):.2f}%"
        return element(
            "g",
            element("line", class_="level", x1="0%", x2="100%", y1=at, y2=at),
            element("text", self.level.name, class_="note", x="100%", y=at, dy=-7, text_anchor="end"),
        )

    def _diagonal(self, xs: list[float], ys: list[float]) -> Html | None:
        if self.diagonal is None:
            return None
        low, high = max(xs[0], ys[0]), min(xs[-1], ys[-1])
        ends = [(_place(at, xs), 100 - _place(at, ys)) for at in (low, high)]
        return element(
            "g",
            _stretched(" ".join(f"{px:.2f},{py:.2f}" for px, py in ends), "level"),
            element("text", self.diagonal, class_="note", x="64%", y="56%"),
        )

    def _numbers(self) -> Html:
        rows: list[list[Content]] = [[self.x.show(x), self.y.show(y)] for x, y in self.line.points]
        return table(
            [self.x.label, self.y.label], rows, caption=f"{self.title}: {self.line.name}", numeric=True
        )


def _place(value: float, marks: list[float]) -> float:
    """Where a value lies between the first and the last tick, in percent."""
    return 100.0 * (value - marks[0]) / (marks[-1] - marks[0])


def _stretched(points: str, kind: str) -> Html:
    """A line in percentages of the drawing, whose stroke does not stretch with it."""
    drawn = element("polyline", class_=kind, points=points)
    return element(
        "svg",
        drawn,
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        width="100%",
        height="100%",
        overflow="visible",
    )
