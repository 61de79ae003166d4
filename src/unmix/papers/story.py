"""What a paper tells a reader at a glance: scenes of the common story, and a plane to explore."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Scene:
    """A part of the story that all papers tell together, beside one of the paper's figures."""

    act: Literal["mixes", "breaks", "unmixes"]
    title: str
    text: str
    figure: str


@dataclass(frozen=True)
class Plane:
    """A trained net in a plane through a point: `cells` are rows of "1" where it is right.

    The plane reaches from -extent to extent, in the unit of the radii, with the point in its
    middle; `accuracy` is the robust accuracy within each of the explorer's radii.
    """

    net: str
    seed: int
    extent: float
    cells: tuple[str, ...]
    accuracy: tuple[float, ...]


@dataclass(frozen=True)
class Explorer:
    """A picture and a curve that a reader moves together by the radius, for each net and seed."""

    title: str
    caption: str
    unit: str
    radii: tuple[float, ...]
    planes: tuple[Plane, ...]
