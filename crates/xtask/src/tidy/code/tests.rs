//! Tests of comments, strings and test modules in source text.

use super::*;

#[test]
fn comments_and_literals_are_blank_and_lines_stay() {
    let cases = [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ d */ e", "a                   e"),
        ("f(\"x}\\\"y\")", "f(\"     \")"),
        ("r#\"a\"b\"# z", "\"      \" z"),
        ("'}' 'a '\\'' x", "    'a      x"),
        ("&'static str", "&'static str"),
        ("her!(\"x\")", "her!(\" \")"),
    ];
    for (source, expected) in cases {
        let (text, _) = blank(source);
        assert_eq!(text, expected, "{source}");
    }
}

#[test]
fn strings_are_collected_with_their_lines() {
    let code = Code::read("let a = \"one\";\nlet b = r#\"two\nlines\"#;\nlet c = b\"three\";");

    let expected = [(1, "one"), (2, "two\nlines"), (4, "three")];
    let found: Vec<_> = code
        .strings
        .iter()
        .map(|(line, text)| (*line, text.as_str()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn test_modules_are_blank_and_counted() {
    let code =
        Code::read("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"s\"; }\n}\nfn c() {}");

    assert!(code.text.contains("fn a") && code.text.contains("fn c"));
    assert!(!code.text.contains("fn b"));
    assert!(code.strings.is_empty());
    assert_eq!(code.test_lines, 4);
}
