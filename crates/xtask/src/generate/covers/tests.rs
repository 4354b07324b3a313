//! Tests of comments in all three languages.

use super::*;

fn parsed(path: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let found = parse(Path::new(path), text).map_err(|error| error.to_string())?;
    let ids = |rules: &[RuleId]| {
        let ids: Vec<String> = rules.iter().map(RuleId::to_string).collect();
        ids.join(" ")
    };
    Ok(found
        .into_iter()
        .map(|covering| (covering.test, ids(&covering.rules)))
        .collect())
}

#[test]
fn tests_are_named_by_their_path() {
    let rust = "/// Covers 3.4, 7.2.\n#[tokio::test]\nasync fn a_thing_happens() {\n}\n";
    let nested = "mod tests {\n    /// Why.\n    /// Covers 9.1.\n    /// Covers 9.2.\n    #[test]\n    #[ignore]\n    fn b() {}\n}\n#[test]\nfn uncovered() {}\n";
    let python = "# covers: 4.2\n@pytest.mark.parametrize(\n    \"a\", [1],\n)\nasync def test_c(vault):\n    pass\n";
    let node = "// covers: 4.2, 4.3\ntest('a token is kept', async () => {\n";
    let cases = [
        (
            "crates/cloakroom/tests/it/create.rs",
            rust,
            "create::a_thing_happens",
            "3.4 7.2",
        ),
        (
            "crates/cloakroom/src/token_attributes/id.rs",
            nested,
            "token_attributes::id::b",
            "9.1 9.2",
        ),
        (
            "crates/cloakroom/src/access/mod.rs",
            nested,
            "access::b",
            "9.1 9.2",
        ),
        (
            "crates/cloakroom-expressions/src/mask.rs",
            nested,
            "cloakroom-expressions: mask::b",
            "9.1 9.2",
        ),
        (
            "conformance/python/test_tokens.py",
            python,
            "Python client: test_c",
            "4.2",
        ),
        (
            "conformance/node/tokens.test.mjs",
            node,
            "Node client: a token is kept",
            "4.2 4.3",
        ),
    ];
    for (path, text, test, rules) in cases {
        let expected = vec![(test.to_owned(), rules.to_owned())];
        assert_eq!(parsed(path, text), Ok(expected), "{path}");
    }
}

#[test]
fn invalid_comments_are_rejected() {
    let path = "crates/cloakroom/tests/it/create.rs";
    let planted = [
        (
            "/// Covers 3.x.\n#[test]\nfn a() {}",
            ":1: `3.x` is not the id of a rule",
        ),
        (
            "/// Covers 3.1\u{20}and more.\n#[test]\nfn a() {}",
            ":1: `3.1 and more` is not the id of a rule",
        ),
        (
            "/// Covers 3.1.\nfn helper() {}",
            ":2: helper covers rules and is no test",
        ),
        (
            "/// Covers 3.1.\n\n#[test]\nfn a() {}",
            ":2: no test follows on what it covers",
        ),
        ("/// Covers 3.1.\n", ": no test follows on what it covers"),
    ];
    for (text, expected) in planted {
        assert_eq!(
            parsed(path, text),
            Err(format!("{path}{expected}")),
            "{text}"
        );
    }
}
