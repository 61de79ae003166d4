"""Files that are never half written, and files of tensors that know when they are damaged."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from unmix.errors import StoreError


def put(path: Path, content: bytes) -> None:
    """Write a new file and ask for it to be on the disk."""
    path.write_bytes(content)
    sync(path)


def replace(path: Path, content: bytes) -> None:
    """Write a file so that a reader meets the old content or the new one, nothing between."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        put(draft, content)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Ask the system to put a file or folder on the disk now."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def pack(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> bytes:
    """Tensors with a few facts, such that `unpack` can tell a damaged file from a sound one."""
    plain = {name: t.detach().to("cpu", copy=True).contiguous() for name, t in tensors.items()}
    head = {"names": list(plain), "about": about, "seal": _seal(plain, about)}
    # One entry only: safetensors writes several of them in no fixed order.
    return safetensors.torch.save(plain, {"unmix": json.dumps(head)})


def unpack(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors (in the order in which they were given) and facts of a sealed file."""
    try:
        with safe_open(path, "pt") as file:
            head = json.loads((file.metadata() or {})["unmix"])
            # Cloned, since a result may depend on how memory is aligned, and files align at will.
            tensors = {name: file.get_tensor(name).clone() for name in head["names"]}
        sound = head["seal"] == _seal(tensors, head["about"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"cannot read {path}: {error}", f"delete it: rm '{path}'") from None
    if not sound:
        raise StoreError(f"{path} is damaged: its seal is broken", f"delete it: rm '{path}'")
    return tensors, head["about"]


def _seal(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> str:
    seal = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, tensor in tensors.items():
        seal.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        seal.update(tensor.numpy().tobytes())
    return seal.hexdigest()
