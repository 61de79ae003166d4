"""Values that describe experiments: frozen, validated, with an exact round trip to JSON and TOML.

A field that may hold one of several kinds is annotated `Kind("nets")`; its class is found in the
catalog by the value's `kind`, so a new kind needs no edit here.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import tomli_w
from pydantic import BaseModel, ConfigDict, SerializeAsAny, ValidationError
from pydantic.fields import FieldInfo

from unmix import catalog
from unmix.errors import SpecError, UnknownName, nearest

# Bumped when the same spec begins to mean other numbers, so that no stored result outlives it.
FORMAT = 1

S = TypeVar("S", bound="Spec")
AnySpec = SerializeAsAny[Any]


@dataclass(frozen=True)
class Kind:
    """Marks a field whose class is chosen by the value's `kind` within a family of the catalog."""

    family: str


class Spec(BaseModel):
    """Base of every value in an experiment."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=True
    )

    def __init__(self, **values: Any) -> None:
        for name in values:
            if name not in type(self).model_fields:
                raise SpecError(
                    f"{_name(type(self))} has no field {name!r}", _near(type(self), name)
                )
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _translated(error) from None

    @classmethod
    def parse(cls, values: Any, path: str = "") -> Self:
        """Build from plain data (JSON, TOML); every error names its path."""
        if isinstance(values, cls):
            return values
        if not isinstance(values, Mapping):
            raise SpecError(f"{path or 'spec'}: expected a table, got {_shown(values)}")
        ready: dict[str, Any] = {}
        for name, value in values.items():
            here = f"{path}.{name}" if path else str(name)
            if name not in cls.model_fields:
                raise SpecError(f"{here}: {_name(cls)} has no field {name!r}", _near(cls, name))
            ready[name] = _parsed(cls.model_fields[name], value, here)
        try:
            return cls(**ready)
        except SpecError as error:
            raise SpecError(_prefixed(error.message, path), error.hint) from None

    def plain(self) -> dict[str, Any]:
        """Plain data; fields that hold None are left out, since TOML has no null."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_json(self) -> str:
        return json.dumps(self.plain(), indent=2) + "\n"

    def to_toml(self) -> str:
        return tomli_w.dumps(self.plain())

    def digest(self) -> str:
        """Sixteen hex digits: equal values have equal digests, in any process."""
        text = json.dumps([FORMAT, self.plain()], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def override(self, assignment: str) -> Self:
        """A copy with `a.b=v` applied; v is JSON, or else a bare string."""
        path, equals, text = assignment.partition("=")
        if not equals or not path:
            raise SpecError(f"expected name=value, got {assignment!r}", "example: --set data.k=20")
        plain = self.plain()
        _set(type(self), plain, path.split("."), _literal(text), path)
        return type(self).parse(plain)


def read(cls: type[S], path: Path) -> S:
    """Read a spec from a .json or .toml file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"cannot read {path}: {error}", "give a .json or .toml file") from None
    try:
        values = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except ValueError as error:
        raise SpecError(f"{path} is not valid {path.suffix[1:] or 'JSON'}: {error}") from None
    return cls.parse(values)


def schema(cls: type[Spec]) -> dict[str, Any]:
    """JSON Schema of a spec, with every kind of every family of the catalog."""
    families = {f.family: name for name, field in cls.model_fields.items() if (f := _kind(field))}
    document = cls.model_json_schema()
    for family, name in families.items():
        members = {member: catalog.load(family, member) for member in catalog.names(family)}
        document["properties"][name] = {"anyOf": [m.model_json_schema() for m in members.values()]}
    return document


def _parsed(field: FieldInfo, value: Any, path: str) -> Any:
    if kind := _kind(field):
        return _of_kind(kind.family, value, path)
    annotation = field.annotation
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return annotation.parse(value, path)
    return _tuples(value)


def _of_kind(family: str, value: Any, path: str) -> Spec:
    if isinstance(value, Spec):
        return value
    if not isinstance(value, Mapping) or "kind" not in value:
        options = ", ".join(catalog.names(family))
        raise SpecError(
            f"{path}: expected a table with a 'kind', got {_shown(value)}", f"kinds: {options}"
        )
    try:
        member = catalog.load(family, value["kind"])
    except UnknownName as error:
        raise SpecError(f"{path}.kind: {error.message}", error.hint) from None
    return member.parse(value, path)


def _set(cls: type[Spec], plain: dict[str, Any], path: list[str], value: Any, whole: str) -> None:
    name, *rest = path
    if name not in cls.model_fields:
        raise SpecError(f"{whole}: {_name(cls)} has no field {name!r}", _near(cls, name))
    if not rest:
        plain[name] = value
        return
    kind = _kind(cls.model_fields[name])
    if rest == ["kind"] and kind:
        # Another kind: keep the fields that both have, leave the others at their defaults.
        member = catalog.load(kind.family, value)
        kept = {key: v for key, v in plain.get(name, {}).items() if key in member.model_fields}
        plain[name] = {**kept, "kind": value}
        return
    inner = (
        catalog.load(kind.family, plain[name]["kind"])
        if kind
        else cls.model_fields[name].annotation
    )
    if not (isinstance(inner, type) and issubclass(inner, Spec)):
        raise SpecError(f"{whole}: {name!r} is a value, it has no field {rest[0]!r}")
    _set(inner, plain.setdefault(name, {}), rest, value, whole)


def _kind(field: FieldInfo) -> Kind | None:
    return next((m for m in field.metadata if isinstance(m, Kind)), None)


def _translated(error: ValidationError) -> SpecError:
    lines = []
    for item in error.errors()[:6]:
        place = ".".join(str(part) for part in item["loc"])
        message = item["msg"].removeprefix("Value error, ")
        came = (
            "" if item["type"] in ("missing", "value_error") else f", got {_shown(item['input'])}"
        )
        lines.append(f"{place}: {message}{came}")
    return SpecError("\n".join(lines))


def _prefixed(message: str, path: str) -> str:
    """Put a path before each line; a line that starts with ':' speaks of the whole value."""
    lines = message.split("\n")
    if not path:
        return message
    return "\n".join(path + line if line.startswith(":") else f"{path}.{line}" for line in lines)


def _near(cls: type[Spec], name: Any) -> str:
    return nearest(str(name), cls.model_fields)


def _name(cls: type[Spec]) -> str:
    kind = cls.model_fields.get("kind")
    return f"'{kind.default}'" if kind is not None else cls.__name__


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list | tuple) else value
