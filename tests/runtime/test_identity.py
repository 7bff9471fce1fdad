"""A party is its certificate: pins, files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from crosshatch.errors import ConfigError, RunError
from crosshatch.runtime import needed
from crosshatch.runtime.identity import Identity, Peers, pin_of
from tests.support.intruders import minted


def test_a_certificate_is_on_p256_and_signs_no_other() -> None:
    made = x509.load_pem_x509_certificate(Identity.make("hub-0-0").certificate)
    key = made.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not made.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_files_go_through(tmp_path: Path) -> None:
    one = Identity.make("client-0-1-2")
    one.write(tmp_path / "client-0-1-2")
    assert Identity.read(tmp_path / "client-0-1-2") == one
    assert (tmp_path / "client-0-1-2" / "key.pem").stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in repr(one)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    Identity.make("hub-0-0").write(tmp_path)
    (tmp_path / "key.pem").chmod(0o640)
    with pytest.raises(RunError, match="can be read by others"):
        Identity.read(tmp_path)


def test_a_folder_without_identity_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no identity of a party"):
        Identity.read(tmp_path)


def test_the_pin_decides_and_not_the_name() -> None:
    hub, client, false = (Identity.make(name) for name in ("hub-0-0", "client-0-0-0", "client-0-0-0"))
    peers = Peers({one.name: one.certificate for one in (hub, client)})
    assert peers.who(client.certificate, "client-0-0-0") == "client-0-0-0"
    assert peers.who(false.certificate, "client-0-0-0") is None
    assert peers.who(minted(hub, "client-0-0-0").certificate, "client-0-0-0") is None
    peers.revoke("client-0-0-0")
    assert peers.who(client.certificate, "client-0-0-0") is None
    assert peers.who(hub.certificate, "hub-0-0") == "hub-0-0"
    assert pin_of(client.certificate) != pin_of(false.certificate)
    assert pin_of(client.certificate + hub.certificate) == pin_of(client.certificate)  # a chain: its first


def test_a_certificate_under_another_name_is_a_strangers() -> None:
    hub = Identity.make("hub-0-0")
    assert Peers({"hub-0-1": hub.certificate}).who(hub.certificate, "hub-0-0") is None


def test_what_is_no_certificate_is_refused() -> None:
    with pytest.raises(RunError, match="does not read"):
        pin_of(b"\xff-----BEGIN NOTHING-----\nAAAA\n-----END NOTHING-----\n")


def test_without_the_extra_a_command_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    needed.require_runtime("crosshatch launch")
    monkeypatch.setattr(needed, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"needs grpcio and cryptography, .* pip install -e '.\[runtime\]'"):
        needed.require_runtime("crosshatch launch")
