"""JAAS strings, read as Kafka's `JaasConfig` reads them."""

import pytest

from ottla.security.sasl.jaas import PLAIN_MODULE, WrongJaas, parse_jaas, parse_login


def test_a_login_has_a_module_a_flag_and_options() -> None:
    entry = parse_login(f'{PLAIN_MODULE} required username="alice" password="alice-secret";')
    assert entry.module == PLAIN_MODULE
    assert entry.flag == "required"
    assert entry.options == {"username": "alice", "password": "alice-secret"}


def test_the_users_of_a_server_are_options_of_their_own() -> None:
    entry = parse_login('Module required username="admin" user_admin="a" user_alice=b "user_bob smith"="c";')
    assert entry.users() == {"admin": "a", "alice": "b", "bob smith": "c"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('M required k="a b;c=d";', "a b;c=d"),
        ("M required k='single \" inside';", 'single " inside'),
        (r'M required k="say \"hi\"";', 'say "hi"'),
        (r'M required k="back\\slash";', "back\\slash"),
        (r'M required k="tab\there \101";', "tab\there A"),
        ("M REQUIRED k=word-with_all.of$it;", "word-with_all.of$it"),
        ('M sufficient k="1234";', "1234"),
        ('M optional // a comment\n /* and\n another */ k="v" ;', "v"),
        ('M required\n\tk = "spaced" ;', "spaced"),
        ('M required k="";', ""),
    ],
)
def test_values_are_quoted_as_in_java(text: str, value: str) -> None:
    assert parse_login(text).options == {"k": value}


def test_there_may_be_several_entries() -> None:
    entries = parse_jaas('A required a="1"; B optional;')
    assert [(entry.module, entry.flag, dict(entry.options)) for entry in entries] == [
        ("A", "required", {"a": "1"}),
        ("B", "optional", {}),
    ]
    with pytest.raises(WrongJaas, match="contains 2 login modules, should be 1"):
        parse_login("A required; B required;")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Login module not specified"),
        ("  // nothing\n", "Login module not specified"),
        (";", "Login module not specified"),
        ("Module", "control flag not specified"),
        ("Module maybe;", "Invalid login module control flag"),
        ("Module ;", "Invalid login module control flag"),
        ("Module required", "not terminated by semi-colon"),
        ('Module required password="geheim"', "not terminated by semi-colon"),
        ("Module required password;", "Value not specified for key 'password'"),
        ("Module required password=;", "Value not specified for key 'password'"),
        ("Module required password=1234;", "Value not specified for key 'password'"),
        ('Module required password="geheim;', "Value not specified for key 'password'"),
        ("Module required =geheim;", "no name"),
    ],
)
def test_what_is_wrong_is_said_without_a_secret(text: str, reason: str) -> None:
    with pytest.raises(WrongJaas, match=reason) as caught:
        parse_jaas(text)
    assert "geheim" not in str(caught.value)


def test_a_login_does_not_show_its_options() -> None:
    assert "geheim" not in repr(parse_login('Module required password="geheim";'))
