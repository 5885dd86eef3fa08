"""pip-audit, also where a registry has no page for each version of a package but one for the newest alone.

Run by `make audit` in the environment of pip-audit, with its arguments. Such a page tells of one version only, so that
a package pinned to another stays unanswered, which `--strict` takes for a failure.
"""

from __future__ import annotations

import re
from typing import Any

import requests
from pip_audit._cli import audit

_OF_A_VERSION = re.compile(r"^(?P<page>.*/pypi/[^/]+)/(?P<version>[^/]+)/json$")

_get = requests.Session.get


def get(self: requests.Session, url: str, **options: Any) -> requests.Response:
    """Ask for a version's page, and else for that of the newest if it is the same version."""
    response = _get(self, url, **options)
    asked = _OF_A_VERSION.match(url)
    if response.status_code != requests.codes.not_found or asked is None:
        return response
    newest = _get(self, f"{asked['page']}/json", **options)
    try:
        same = newest.ok and newest.json()["info"]["version"] == asked["version"]
    except (ValueError, KeyError, TypeError):
        return response
    return newest if same else response


if __name__ == "__main__":
    requests.Session.get = get  # type: ignore[method-assign]
    audit()
