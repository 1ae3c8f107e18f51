"""The application takes a second or two to make, so the tests of a file share one; each signs in anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from served import Site, new_folder, pages, serve


@pytest.fixture(scope="module")
def module_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder, _ = new_folder(tmp_path_factory.mktemp("served"))
    with pages(tmp_path_factory.mktemp("static")), serve(folder) as served:
        yield served


@pytest.fixture
def site(module_site: Site) -> Site:
    module_site.forget_sessions()
    return module_site
