//! Colors, and their contrast by WCAG 2.2.

use std::fmt;

use cloakroom_platform::api::FieldError;

/// Background of the pages' content in the light and the dark color scheme. The stylesheet uses the same values.
pub const LIGHT_SURFACE: Color = Color(0xff, 0xff, 0xff);
pub const DARK_SURFACE: Color = Color(0x17, 0x1b, 0x22);

/// Success criterion 1.4.3, level AA: text.
const TEXT_CONTRAST: f64 = 4.5;
/// Success criterion 1.4.11, level AA: user interface components.
const COMPONENT_CONTRAST: f64 = 3.0;

/// An opaque sRGB color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

/// Colors of buttons and of other components that stand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colors {
    pub accent: Color,
    /// Text on the accent color.
    pub accent_text: Color,
}

impl Color {
    pub const RULE: &str = "must be a color such as #1a2b3c";

    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#')?;
        if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let channel = |from: usize| u8::from_str_radix(digits.get(from..from + 2)?, 16).ok();
        Some(Self(channel(0)?, channel(2)?, channel(4)?))
    }

    /// Contrast ratio with another color, from 1 to 21.
    pub fn contrast(self, other: Self) -> f64 {
        let (one, other) = (self.luminance(), other.luminance());
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// Relative luminance.
    fn luminance(self) -> f64 {
        let linear = |channel: u8| {
            let value = f64::from(channel) / 255.0;
            match value <= 0.04045 {
                true => value / 12.92,
                false => ((value + 0.055) / 1.055).powf(2.4),
            }
        };
        let Self(red, green, blue) = self;
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(red, green, blue) = self;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl Colors {
    /// Checks the contrast of text on the accent color, and of the accent color on the page.
    pub(super) fn check(self, attribute: &str, surface: Color) -> Vec<FieldError> {
        let Self {
            accent,
            accent_text,
        } = self;
        let checks = [
            (
                "accent_text",
                accent.contrast(accent_text),
                "the accent color",
                TEXT_CONTRAST,
            ),
            (
                "accent",
                accent.contrast(surface),
                "the background of the page",
                COMPONENT_CONTRAST,
            ),
        ];
        let failed = checks
            .into_iter()
            .filter(|(_, ratio, _, needed)| ratio < needed);
        failed
            .map(|(name, ratio, other, needed)| {
                // Rounded down, so that a ratio that fails never reads like one that passes.
                let ratio = (ratio * 100.0).floor() / 100.0;
                let rule = format!(
                    "has a contrast of {ratio:.2}:1 with {other}; WCAG AA requires at least {needed:.1}:1"
                );
                FieldError::new(format!("{attribute}.{name}"), rule)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_six_hexadecimal_digits() {
        assert_eq!(Color::parse("#1A2b3c"), Some(Color(0x1a, 0x2b, 0x3c)));
        assert_eq!(Color(0x1a, 0x2b, 0x3c).to_string(), "#1a2b3c");
        let invalid = [
            "",
            "#",
            "1a2b3c",
            "#1a2b3",
            "#1a2b3c4",
            "#1a2b3g",
            "red",
            "#+12345",
            "#é1b2c",
            "#1a2b3c;background:url(//a)",
            "rgb(0,0,0)",
        ];
        for text in invalid {
            assert_eq!(Color::parse(text), None, "{text}");
        }
    }

    #[test]
    fn contrast_ratios_follow_wcag() {
        let [black, white] = [Color(0, 0, 0), Color(255, 255, 255)];
        let cases = [
            (black, white, 21.0),
            (white, white, 1.0),
            // The grays at the limit of AA on white.
            (Color(0x76, 0x76, 0x76), white, 4.54),
            (Color(0x77, 0x77, 0x77), white, 4.47),
            (Color(0xff, 0, 0), white, 3.99),
        ];
        for (one, other, expected) in cases {
            let ratio = one.contrast(other);
            assert!((ratio - expected).abs() < 0.01, "{one} {other}: {ratio}");
            assert!((other.contrast(one) - ratio).abs() < f64::EPSILON);
        }
    }

    #[test]
    fn low_contrast_is_rejected_with_the_measured_and_the_required_ratio() {
        let colors = |accent, accent_text| Colors {
            accent: Color::parse(accent).unwrap(),
            accent_text: Color::parse(accent_text).unwrap(),
        };
        assert!(
            colors("#0f5fd7", "#ffffff")
                .check("colors", LIGHT_SURFACE)
                .is_empty()
        );

        let failed = colors("#777777", "#ffffff").check("colors", LIGHT_SURFACE);
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].path, "colors.accent_text");
        let rule =
            "has a contrast of 4.47:1 with the accent color; WCAG AA requires at least 4.5:1";
        assert_eq!(failed[0].rule, rule);

        let failed = colors("#222233", "#ffffff").check("dark_colors", DARK_SURFACE);
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].path, "dark_colors.accent");
        assert!(
            failed[0].rule.ends_with("requires at least 3.0:1"),
            "{}",
            failed[0].rule
        );
    }
}
