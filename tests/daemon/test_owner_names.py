"""Names of users."""

from cachewarden.owners import user_name


def test_a_user_without_a_name_is_a_number():
    """Its account may be gone."""
    assert user_name(0) == "root"
    assert user_name(4_000_000_000) == "4000000000"
