//! Texts known to break parsers, templates, searches, databases and logs.

use cloakroom_testkit::SeededRng;

/// Templates that are large, slow, endless or deeply nested without limits.
pub(super) fn template_bomb(chance: &mut SeededRng) -> String {
    let filters = "| append: data | upcase | downcase | url_encode | base64_encode ";
    match chance.below(12) {
        0 => {
            "{% for a in (1..1000) %}{% for b in (1..1000) %}{% for c in (1..1000) %}x{% endfor %}\
              {% endfor %}{% endfor %}"
                .to_owned()
        }
        1 => "{% for a in (1..99999999999999999999) %}x{% endfor %}".to_owned(),
        2 => format!("{{{{ data {} }}}}", filters.repeat(60)),
        3 => format!("{{{{ {}data{} }}}}", "data[".repeat(700), "]".repeat(700)),
        4 => "{% if true %}".repeat(300),
        5 => "{{ data | json: '$..*..*..*..*..*..*..*' }}".to_owned(),
        6 => format!(
            "{{{{ data | json: '$[?(@.a=={}1{})]' }}}}",
            "(".repeat(900),
            ")".repeat(900)
        ),
        7 => {
            let mut doubling = "{% assign a = 'xxxxxxxxxxxxxxxx' %}".to_owned();
            doubling.push_str(&"{% assign a = a | append: a %}".repeat(100));
            doubling + "{{ a }}"
        }
        8 => "{{".repeat(1900),
        9 => format!(
            "{{{{ 'x' | {} }}}}",
            "prepend: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' | ".repeat(60)
        ),
        10 => "{{ 9223372036854775807 | times: 9223372036854775807 | plus: 1 | divided_by: 0 }}"
            .to_owned(),
        _ => "{% capture a %}".repeat(200),
    }
}

/// Regular expressions with catastrophic backtracking; they must never be used as patterns.
pub(super) fn pattern_bomb(chance: &mut SeededRng) -> String {
    let pattern = *chance.pick(&[
        "(a+)+$",
        "(a|aa)+$",
        "(.*a){25}",
        "([a-z]+)*!",
        "(?=(a+))a*b\\1",
    ]);
    let input = "a".repeat(30 + chance.below(4000));
    match chance.below(4) {
        0 => format!("{{{{ '{input}' | replace: '{pattern}', 'x' }}}}"),
        1 => format!("{{{{ '{input}' | replace_regex: '{pattern}', 'x' }}}}"),
        2 => format!("data:\"{pattern}\" AND data:{input}!"),
        _ => format!("/{pattern}/ {input}!"),
    }
}

/// Invalid JWEs.
pub(super) fn jwe(chance: &mut SeededRng) -> String {
    use base64::Engine as _;
    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let header = |alg: &str, more: &str| {
        let kid = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
        let epk =
            r#"{"kty":"OKP","crv":"X25519","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#;
        encode(&format!(
            r#"{{"alg":"{alg}","enc":"A256GCM","kid":"{kid}","epk":{epk}{more}}}"#
        ))
    };
    match chance.below(10) {
        0 => "....".to_owned(),
        1 => ".".repeat(5_000),
        2 => format!("{}..AAAA.AAAA.AAAA", header("ECDH-ES", "")),
        3 => format!(
            "{}..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA",
            header("ECDH-ES", "")
        ),
        4 => format!(
            "{}.AAAA.AAAA.AAAA.AAAA",
            header("PBES2-HS256+A128KW", r#","p2c":2147483647"#)
        ),
        5 => format!("{}..AAAA.AAAA.AAAA", header("ECDH-ES", r#","zip":"DEF""#)),
        6 => format!("{}..AAAA.AAAA.AAAA", encode(&"[".repeat(1_000))),
        7 => format!("{}..{}..", header("none", ""), "A".repeat(100_000)),
        8 => format!(
            "{}..AAAA.AAAA.AAAA",
            header("ECDH-ES", r#","crit":["b64"],"b64":false"#)
        ),
        _ => format!("{}..=.=.=", header("dir", "")),
    }
}

/// Values that no enumeration contains, and injection strings for downstream systems.
pub(super) fn oddity(chance: &mut SeededRng) -> String {
    let choices = [
        "",
        " ",
        "CARD",
        "nothing",
        "../../etc/passwd",
        "'; drop table token; --",
        "\" or \"\"=\"",
        "${jndi:ldap://x}",
        "%s%n%x",
        "\u{202e}\u{feff}\u{0}",
        "e\u{301}\u{301}\u{301}",
        "9999-99-99T99:99:99+99:99",
        "-000001-01-01T00:00:00Z",
        "/a//b/",
        "//",
        "metadata.a:b AND AND data:",
        "data:\"",
        "id:* OR 1=1",
        "NaN",
        "0x10",
        "<script>alert(1)</script>",
        "\r\nset-cookie: a=b",
    ];
    (*chance.pick(&choices)).to_owned()
}
