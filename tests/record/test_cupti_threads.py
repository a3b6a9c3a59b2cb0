"""A thread's number as CUPTI has it leads to the system's."""

import threading

import pytest

from inferometer.record import cupti_threads
from inferometer.record.cupti_threads import remember_thread, system_threads


def test_every_thread_that_runs_is_known_by_the_lower_half_of_its_ident() -> None:
    found, native, ident = dict[int, int](), list[int](), list[int]()

    def look() -> None:
        native.append(threading.get_native_id())
        ident.append(threading.get_ident())
        found.update(system_threads())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found[ident[0] % 2**32] == native[0]
    assert found[threading.get_ident() % 2**32] == threading.get_native_id()


def test_a_number_of_the_upper_half_is_known_as_a_signed_one_and_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupti_threads, "_known", {0x7FAB_37FF_F6C0: 11, 0x7FAB_C8F6_A6C0: 12})
    monkeypatch.setattr(threading, "enumerate", list)  # a thread that runs may have either number
    assert system_threads() == {0x37FF_F6C0: 11, 0xC8F6_A6C0: 12, 0xC8F6_A6C0 - 2**32: 12, 0x3709_5940: 12}


def test_a_thread_that_has_ended_is_known_if_it_was_remembered() -> None:
    native = list[int]()
    thread = threading.Thread(target=lambda: native.append(remember_thread()))
    thread.start()
    thread.join()
    assert native[0] in system_threads().values()
