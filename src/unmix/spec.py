"""Values that describe experiments: frozen, validated, with an exact round trip to JSON and TOML.

A field that may hold one of several kinds is annotated `Kind("nets")`; its class is found in the
catalog by the value's `kind`, so a new kind needs no edit here.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import tomli_w
from pydantic import BaseModel, ConfigDict, SerializeAsAny, ValidationError, field_validator
from pydantic.fields import FieldInfo

from unmix import catalog
from unmix.errors import SpecError, UnknownName, nearest

# Bumped when the same spec begins to mean other numbers, so that no stored result outlives it.
FORMAT = 1

S = TypeVar("S", bound="Spec")
AnySpec = SerializeAsAny[Any]

_LOADERS: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".json": json.loads}


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
        for name, value in values.items():
            if name not in type(self).model_fields:
                raise SpecError(
                    f"{_name(type(self))} has no field {name!r}", _near(type(self), name)
                )
            if kind := _kind(type(self).model_fields[name]):
                values[name] = _of_kind(kind.family, value, name)
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _translated(type(self), error) from None

    @field_validator("*")
    @classmethod
    def _unsigned_zero(cls, value: Any) -> Any:
        # -0.0 equals 0.0, so it must not have another digest.
        return value + 0.0 if isinstance(value, float) else value

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

    def override(self, *assignments: str) -> Self:
        """A copy with every `a.b=v` applied, judged as a whole; v is JSON or a bare string."""
        plain = self.plain()
        for assignment in assignments:
            path, equals, text = assignment.partition("=")
            if not equals or not path:
                came = f"expected name=value, got {assignment!r}"
                raise SpecError(came, "example: --set data.k=20")
            _set(type(self), plain, path.split("."), _literal(text), path)
        return type(self).parse(plain)


def read(cls: type[S], path: Path) -> S:
    """Read a spec from a .json or .toml file."""
    hint = "give a .toml or .json file; the experiment.json of a run folder is one"
    if path.suffix not in _LOADERS:
        raise SpecError(f"expected a .toml or .json file, got {str(path)!r}", hint)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror}", hint) from None
    except UnicodeDecodeError:
        raise SpecError(f"cannot read {path}: it is not text", hint) from None
    if not text.strip():
        raise SpecError(f"{path} is empty", hint)
    try:
        values = _LOADERS[path.suffix](text)
    except (ValueError, RecursionError) as error:
        hint = "mend it there; the experiment.json of a run folder is a sound example"
        raise SpecError(f"{path} is not valid {path.suffix[1:]}: {error}", hint) from None
    return cls.parse(values)


def schema(cls: type[Spec]) -> dict[str, Any]:
    """JSON Schema of a spec, with every kind of every family of the catalog."""
    families = {f.family: name for name, field in cls.model_fields.items() if (f := _kind(field))}
    document = cls.model_json_schema()
    for family, name in families.items():
        members = [catalog.load(family, m).model_json_schema() for m in catalog.names(family)]
        for member in members:
            # References are resolved from the root of the document.
            document.setdefault("$defs", {}).update(member.pop("$defs", {}))
        document["properties"][name] = {"anyOf": members}
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
        if getattr(value, "kind", None) not in catalog.names(family):
            options = ", ".join(catalog.names(family))
            raise SpecError(f"{path}: {_name(type(value))} is none of the {family}", options)
        return value
    if not isinstance(value, Mapping) or "kind" not in value:
        options = ", ".join(catalog.names(family))
        raise SpecError(
            f"{path}: expected a table with a 'kind', got {_shown(value)}", f"kinds: {options}"
        )
    return _member(family, value["kind"], f"{path}.kind").parse(value, path)


def _member(family: str, kind: Any, path: str) -> type[Spec]:
    try:
        member: type[Spec] = catalog.load(family, kind)
    except UnknownName as error:
        raise SpecError(f"{path}: {error.message}", error.hint) from None
    return member


def _set(cls: type[Spec], plain: dict[str, Any], path: list[str], value: Any, whole: str) -> None:
    name, *rest = path
    if name not in cls.model_fields:
        raise SpecError(f"{whole}: {_name(cls)} has no field {name!r}", _near(cls, name))
    if not rest:
        plain[name] = value
        return
    kind, table = _kind(cls.model_fields[name]), plain.setdefault(name, {})
    if not isinstance(table, dict):
        raise SpecError(f"{whole}: {name!r} is a value, it has no field {rest[0]!r}")
    if rest == ["kind"] and kind:
        # Another kind: keep the fields that both have, leave the others at their defaults.
        member = _member(kind.family, value, whole)
        kept = {key: v for key, v in table.items() if key in member.model_fields}
        plain[name] = {**kept, "kind": value}
        return
    inner = (
        _member(kind.family, table.get("kind"), f"{name}.kind")
        if kind
        else cls.model_fields[name].annotation
    )
    if not (isinstance(inner, type) and issubclass(inner, Spec)):
        raise SpecError(f"{whole}: {name!r} is a value, it has no field {rest[0]!r}")
    _set(inner, table, rest, value, whole)


def _kind(field: FieldInfo) -> Kind | None:
    return next((m for m in field.metadata if isinstance(m, Kind)), None)


def _translated(cls: type[Spec], error: ValidationError) -> SpecError:
    items = error.errors()[:6]
    lines = []
    for item in items:
        place = ".".join(str(part) for part in item["loc"])
        came = (
            "" if item["type"] in ("missing", "value_error") else f", got {_shown(item['input'])}"
        )
        message = item["msg"].removeprefix("Value error, ").replace("valid tuple", "list")
        lines.append(f"{place}: {message}{came}")
    return SpecError("\n".join(lines), _example(cls, items[0]["loc"]))


def _example(cls: type[Spec], place: tuple[int | str, ...]) -> str:
    """What the field at a place is, and a value that is legal there."""
    field = cls.model_fields.get(str(place[0])) if place else None
    if (
        field is None
        or field.is_required()
        or not isinstance(field.default, str | int | float | tuple)
    ):
        return ""
    what = f" ({field.description})" if field.description else ""
    return f"for example {place[0]}={json.dumps(field.default)}{what}"


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
