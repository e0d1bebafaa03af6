from shortlist.errors import InputError, unknown_name


def test_bad_input_is_a_value_error():
    assert issubclass(InputError, ValueError)


def test_unknown_names_suggest_the_nearest_and_list_all():
    message = str(unknown_name("method", "prodne", ["sl", "proden", "cc"]))
    assert message == "unknown method 'prodne': did you mean 'proden'? (known: cc, proden, sl)"


def test_of_ten_thousand_names_a_few_are_listed_and_the_nearest_is_found():
    message = str(unknown_name("class", "klas 777", [f"class {i}" for i in range(10_000)]))
    assert "did you mean 'class 777'?" in message
    assert message.endswith(", and 9,980 more)")
    assert len(message) < 400


def test_nothing_near_suggests_nothing():
    assert str(unknown_name("method", "xyz", ["sl", "cc"])) == "unknown method 'xyz' (known: cc, sl)"
