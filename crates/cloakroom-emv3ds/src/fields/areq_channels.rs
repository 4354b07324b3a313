//! The `AReq`: fields of the browser channel and of the app channel.

use super::Format::{
    Ascii, Boolean, Codes, Digits, Ip, List, Minutes, Number, Object, PublicKey, Text, Url, Uuid,
};
use super::condition::{Condition, Rule};
use super::field::{Channels, Field, optional, required, when};
use crate::version::Version::{V2_1_0, V2_2_0, V2_3_1};

static WITH_JAVASCRIPT: Rule = Rule {
    name: "if JavaScript is enabled",
    condition: Condition::True("browserJavascriptEnabled"),
};

const COLOR_DEPTH: super::Format = Codes(&["1", "4", "8", "15", "16", "24", "32", "48"]);
const PIXELS: super::Format = Digits { min: 1, max: 6 };

const BROWSER_ONLY: Channels = Channels::BROWSER;

/// 2.1.0 assumes that JavaScript is enabled.
pub(super) const BROWSER: &[Field] = &[
    required("browserAcceptHeader", Text { min: 1, max: 2048 }).on(BROWSER_ONLY),
    optional("browserIP", Ip).on(BROWSER_ONLY),
    required("browserJavascriptEnabled", Boolean)
        .since(V2_2_0)
        .on(BROWSER_ONLY),
    required("browserJavaEnabled", Boolean)
        .until(V2_1_0)
        .on(BROWSER_ONLY),
    when(&WITH_JAVASCRIPT, "browserJavaEnabled", Boolean)
        .since(V2_2_0)
        .on(BROWSER_ONLY),
    required("browserLanguage", Ascii { min: 1, max: 8 })
        .until(V2_2_0)
        .on(BROWSER_ONLY),
    required("browserLanguage", Ascii { min: 1, max: 35 })
        .since(V2_3_1)
        .on(BROWSER_ONLY),
    required("browserColorDepth", COLOR_DEPTH)
        .until(V2_1_0)
        .on(BROWSER_ONLY),
    when(&WITH_JAVASCRIPT, "browserColorDepth", COLOR_DEPTH)
        .since(V2_2_0)
        .on(BROWSER_ONLY),
    required("browserScreenHeight", PIXELS)
        .until(V2_1_0)
        .on(BROWSER_ONLY),
    when(&WITH_JAVASCRIPT, "browserScreenHeight", PIXELS)
        .since(V2_2_0)
        .on(BROWSER_ONLY),
    required("browserScreenWidth", PIXELS)
        .until(V2_1_0)
        .on(BROWSER_ONLY),
    when(&WITH_JAVASCRIPT, "browserScreenWidth", PIXELS)
        .since(V2_2_0)
        .on(BROWSER_ONLY),
    required("browserTZ", Minutes)
        .until(V2_1_0)
        .on(BROWSER_ONLY),
    when(&WITH_JAVASCRIPT, "browserTZ", Minutes)
        .since(V2_2_0)
        .on(BROWSER_ONLY),
    required("browserUserAgent", Text { min: 1, max: 2048 }).on(BROWSER_ONLY),
    required(
        "acceptLanguage",
        List {
            of: &Ascii { min: 1, max: 100 },
            count: 99,
        },
    )
    .since(V2_3_1)
    .on(BROWSER_ONLY),
    required("threeDSCompInd", Codes(&["Y", "N", "U"])).on(BROWSER_ONLY),
    optional("threeDSMethodId", Uuid)
        .since(V2_3_1)
        .on(BROWSER_ONLY),
    required("notificationURL", Url { max: 256 }).on(BROWSER_ONLY),
];

const UI_TYPES: super::Format = Codes(&["01", "02", "03", "04", "05"]);
const UI_TYPES_231: super::Format = Codes(&["01", "02", "03", "04", "05", "06", "07"]);

pub(super) const APP: &[Field] = &[
    required("sdkAppID", Uuid).on(Channels::APP),
    required("sdkEncData", Ascii { min: 1, max: 64000 }).on(Channels::APP),
    required("sdkEphemPubKey", PublicKey { max: 256 }).on(Channels::APP),
    required(
        "sdkMaxTimeout",
        Number {
            digits: (2, 2),
            min: 5,
            max: 99,
        },
    )
    .on(Channels::APP),
    required("sdkReferenceNumber", Text { min: 1, max: 32 }).on(Channels::APP),
    required("sdkTransID", Uuid).on(Channels::APP),
    required("sdkType", Codes(&["01", "02", "03", "04", "05"]))
        .since(V2_3_1)
        .on(Channels::APP),
    required("deviceRenderOptions", Object).on(Channels::APP),
    required(
        "deviceRenderOptions.sdkInterface",
        Codes(&["01", "02", "03"]),
    )
    .on(Channels::APP),
    required(
        "deviceRenderOptions.sdkUiType",
        List {
            of: &UI_TYPES,
            count: 5,
        },
    )
    .until(V2_2_0)
    .on(Channels::APP),
    required(
        "deviceRenderOptions.sdkUiType",
        List {
            of: &UI_TYPES_231,
            count: 7,
        },
    )
    .since(V2_3_1)
    .on(Channels::APP),
];
