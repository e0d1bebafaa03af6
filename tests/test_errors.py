from shortlist.errors import InputError, unknown_name


def test_bad_input_is_a_value_error():
    assert issubclass(InputError, ValueError)


def test_unknown_names_suggest_the_nearest_and_list_all():
    message = str(unknown_name("method", "prodne", ["sl", "proden", "cc"]))
    assert message == "unknown method 'prodne': did you mean 'proden'? (known: cc, proden, sl)"


def test_nothing_near_suggests_nothing():
    assert str(unknown_name("method", "xyz", ["sl", "cc"])) == "unknown method 'xyz' (known: cc, sl)"
