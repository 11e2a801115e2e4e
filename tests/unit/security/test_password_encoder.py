"""SE-6: passwords among dynamic configs in Kafka's encrypted form."""

from __future__ import annotations

import pytest

from barnabas.errors import ConfigError
from barnabas.security.password_encoder import Encryption, PasswordEncoder

SECRET = "planted-secret-4"
# By Kafka 3.9.1's own PasswordEncoder, with the secret "encoder-secret".
KAFKAS = {
    "planted-secret-5": (
        "initializationVector:49+UT31ACN4eyTgJP3Ff4w==,keyLength:128,salt:Dn5qA9ZBD6/FYNO"
        "SroC++Gsa/NslNruPJnQA0cuxfkTyCqrQSMeQCwAWZ4a1+ebf9BKMCg80dyb3xR0grnvv3BnRN9nR9tC"
        "2I3YmMiENE4GP0cAPQvnJa6GXuiTTYem2W/d0fG9KuMC9ABvP3JnT1AOMwJect31EoGk/YXDHQps9iw7"
        "4OWeBJ2WKHvxlE6y1K3rB3qhg64HZZRz+zT5iO7ZFo9rwuKB6eOUqxsD6+3bmAWJs+XfH7Fu85fnv16t"
        "du7uyagduutw84eHhdqdzXhKAUgM2LVA9W2tWQfEZS8TeqKDqE/HhYPKSCOVa7AwlC4RcO5Rna8Zuph3"
        "DJC6+qQ==,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5"
        "Padding,iterations:4096,passwordLength:16,encryptedPassword:j60wQqcEsp/YSWjX034w"
        "dq/7/hGLeTzaP6fqi2G3yCw="
    ),
    "pässwörd-\U0001f511": (
        "initializationVector:HxPR/y8cje6hyF8i,keyLength:256,salt:RaV2tcLu/kgbJZC8NvBS2Eq"
        "ZNaviy0l1Fk7tO6jsshQdpF/MVpQRLieMgFjzfXq03bfCZ4CqIatssU20Hwp41NGsr7LjgZE22rgTdi3"
        "RudV5UTPoNukSZbgN0rcbHAAlKadReElyW3fJGp3/eOFiQ/xkxxZO6Kr+WBgN8D+fP0SJhKQ3WE8DYpZ"
        "GvhC6OednCAOspGqEPMEYIRqBZAIzGbGVTEuvcZF2Br6/DBUtp7ICw/T3rW3VCgY8tqyF/lXOH3LMV08"
        "7d78JYH69e7VOYN85326TGp7pZkLf9I+zfWosMGQpMZWbCbRx3KQzgFfboO7NL7gTg80ZLiSPEIH15Q="
        "=,keyFactoryAlgorithm:PBKDF2WithHmacSHA256,cipherAlgorithm:AES/GCM/NoPadding,aut"
        "henticationTagLength:128,iterations:4096,passwordLength:11,encryptedPassword:jrR"
        "WGtu567VxPOoAQHFc2jqGjtjGDwVCIwv2Wwoqmw=="
    ),
}


@pytest.mark.parametrize("cipher", ["AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"])
@pytest.mark.parametrize("password", ["", "x" * 16, SECRET, "pässwörd-\U0001f511"])
def test_se_6_what_is_encoded_is_decoded(cipher: str, password: str) -> None:
    encoder = PasswordEncoder("s", Encryption(cipher_algorithm=cipher, key_length=256))
    text = encoder.encode(password)
    assert encoder.decode(text) == password
    assert text != encoder.encode(password)
    assert not password or password not in text
    assert PasswordEncoder("s").decode(text) == password  # by what stands in it


@pytest.mark.parametrize("password", KAFKAS)
def test_se_6_what_kafka_has_encoded_is_decoded(password: str) -> None:
    assert PasswordEncoder("encoder-secret").decode(KAFKAS[password]) == password


def test_se_6_another_secret_opens_nothing() -> None:
    text = PasswordEncoder("one").encode(SECRET)
    with pytest.raises(
        ValueError, match=r"encrypted with another password\.encoder\.secret"
    ) as said:
        PasswordEncoder("two").decode(text)
    assert SECRET not in str(said.value)


@pytest.mark.parametrize(
    "change",
    [
        ("iterations:", "iterations:9"),
        ("SHA512", "SHA3"),
        ("keyLength:128", "keyLength:64"),
        ("passwordLength:16", "passwordLength:15"),
        ("salt:", "salt:!"),
        ("AES/CBC/PKCS5Padding", "DES"),
        ("initializationVector", "iv"),
    ],
)
def test_se_6_a_damaged_text_is_an_error(change: tuple[str, str]) -> None:
    encoder = PasswordEncoder("s")
    text = encoder.encode(SECRET)
    damaged = text.replace(*change)
    assert damaged != text
    with pytest.raises(ValueError, match=r"it is|it does not|password\.encoder|padding") as said:
        encoder.decode(damaged)
    assert SECRET not in str(said.value)
    with pytest.raises(ValueError, match="does not have the format"):
        encoder.decode(SECRET)


@pytest.mark.parametrize(
    ("encryption", "says"),
    [
        (Encryption(keyfactory_algorithm="PBEWithMD5AndDES"), "keyfactory.algorithm: PBEWith"),
        (Encryption(cipher_algorithm="DES/CBC/PKCS5Padding"), "cipher.algorithm: DES"),
        (Encryption(key_length=56), "key.length: 56 is not one of 128, 192, 256"),
        (Encryption(iterations=100_000_000), "iterations"),
    ],
)
def test_se_6_what_cannot_be_had_is_refused(encryption: Encryption, says: str) -> None:
    with pytest.raises(ConfigError, match=f"password.encoder.{says}"):
        PasswordEncoder("s", encryption)
    assert "hidden" in repr(PasswordEncoder("planted"))
