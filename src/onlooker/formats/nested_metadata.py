"""What onlooker leaves in the metadata of its own Parquet files: names of features, and levels of categories."""

from __future__ import annotations

import json
from typing import Any

from onlooker.errors import InputError
from onlooker.json_input import parsed
from onlooker.log import BanditLog

_VERSION = 1
_KEY = b"onlooker"


def metadata_of(log: BanditLog) -> dict[bytes, str]:
    """What to write beside the columns."""
    document: dict[str, Any] = {"format": _VERSION, "feature_names": log.feature_names}
    if log.categories is not None:
        document["categories"] = dict(log.categories)
    return {_KEY: json.dumps(document)}


def names_and_categories(metadata: dict[bytes, bytes]) -> tuple[list[str] | None, dict[str, list[str]] | None]:
    """Names and levels that `metadata_of` gave; other people's files have none."""
    if _KEY not in metadata:
        return None, None
    try:
        document = parsed(metadata[_KEY])
        version, names, categories = document["format"], document["feature_names"], document.get("categories")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError("has damaged metadata under 'onlooker': write it again") from error
    if version != _VERSION:
        raise InputError(f"has format {str(version)[:20]!r}, this onlooker reads {_VERSION}: install a newer one")
    lists = isinstance(categories, dict) and all(isinstance(levels, list) for levels in categories.values())
    if not (names is None or isinstance(names, list)) or not (categories is None or lists):
        raise InputError("has damaged metadata under 'onlooker': write it again")
    return names, categories
