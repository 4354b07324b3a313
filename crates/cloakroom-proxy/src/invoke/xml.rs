//! Inserting values into XML.

/// Replaces characters that XML cannot contain.
const REPLACEMENT: &str = "\u{fffd}";

/// A value as character data or as part of a quoted attribute value.
pub(super) fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // In an attribute, a parser would turn these into spaces.
            '\t' => escaped.push_str("&#9;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            character if is_allowed(character) => escaped.push(character),
            _ => escaped.push_str(REPLACEMENT),
        }
    }
    escaped
}

/// A value inside of a CDATA section, which it cannot end.
pub(super) fn escape_cdata(value: &str) -> String {
    let is_allowed =
        |character: char| matches!(character, '\t' | '\n' | '\r') || is_allowed(character);
    let value = value.replace(|character| !is_allowed(character), REPLACEMENT);
    // An expression may follow `]]`, or precede `]>`, so every bracket and `>` would have to be checked in its place.
    // Instead, the value gets a section of its own, which separates its brackets.
    let value = value.replace("]]>", "]]]]><![CDATA[>");
    format!("]]><![CDATA[{value}]]><![CDATA[")
}

fn is_allowed(character: char) -> bool {
    !character.is_control() && !matches!(character, '\u{fffe}' | '\u{ffff}')
}

/// The text of an expression, whose quotes may be escaped like the text around it.
pub(super) fn unescape(expression: &str) -> String {
    let entities = [
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&#34;", "\""),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ];
    let mut text = expression.to_owned();
    for (entity, character) in entities {
        text = text.replace(entity, character);
    }
    text
}

/// Whether a position is inside of a CDATA section, after `text` that starts inside of one or not.
pub(super) fn is_in_cdata(mut is_inside: bool, text: &str) -> bool {
    let mut rest = text;
    loop {
        let marker = if is_inside { "]]>" } else { "<![CDATA[" };
        match rest.split_once(marker) {
            Some((_, after)) => {
                is_inside = !is_inside;
                rest = after;
            }
            None => return is_inside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_leave_their_place() {
        let text = "<a b=\"c\">'&]]>\n";
        let escaped = "&lt;a b=&quot;c&quot;&gt;&#39;&amp;]]&gt;&#10;";
        assert_eq!(escape(text), escaped);
        let in_cdata = "]]><![CDATA[a]]]]><![CDATA[>b]]><![CDATA[";
        assert_eq!(escape_cdata("a]]>b"), in_cdata);
        for text in ["\u{0}", "\u{b}", "\u{1b}", "\u{ffff}"] {
            assert_eq!(escape(text), "\u{fffd}", "{text:?}");
            assert!(escape_cdata(text).contains("[\u{fffd}]"), "{text:?}");
        }
    }

    #[test]
    fn sections_are_tracked() {
        for (before, text, expected) in [
            (false, "<a>", false),
            (false, "<a><![CDATA[", true),
            (false, "<![CDATA[x]]>", false),
            (false, "<![CDATA[x]]><![CDATA[", true),
            (true, "x", true),
            (true, "<![CDATA[ ]]>", false),
        ] {
            assert_eq!(is_in_cdata(before, text), expected, "{before} {text}");
        }
        assert_eq!(
            unescape("a | json: &quot;$.b&apos;&amp;lt;"),
            "a | json: \"$.b'&lt;"
        );
    }
}
