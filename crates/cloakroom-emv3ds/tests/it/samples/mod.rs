//! Messages written from the specification, independent of the field tables: all required fields,
//! and some optional ones.

mod areq;

use cloakroom_emv3ds::{MessageKind, Version};
use serde_json::{Map, Value, json};

pub(crate) use areq::{areq, areq_options};

pub(crate) const SERVER_ID: &str = "8a880dc0-d2d2-4067-bcb1-b08d1690b26e";
pub(crate) const ACS_ID: &str = "d7c1ee99-9478-44a6-b1f2-391e29c6b340";
pub(crate) const DS_ID: &str = "f25084f0-5b16-4c0a-ae5d-b24808a95e4b";
pub(crate) const SDK_ID: &str = "b2385523-a66c-4907-ac3c-91848e8c0067";

pub(crate) type Fields = Map<String, Value>;

/// The values that the required fields of an `AReq` depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) version: Version,
    /// 01 app, 02 browser, 03 3RI.
    pub(crate) channel: &'static str,
    /// 01 payment, 02 non-payment.
    pub(crate) category: &'static str,
    /// `threeDSRequestorAuthenticationInd` or `threeRIInd`.
    pub(crate) indicator: &'static str,
}

/// Every valid combination of version, channel, category and indicator.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for version in Version::ALL {
        for channel in ["01", "02", "03"] {
            for category in ["01", "02"] {
                if version == Version::V2_1_0 && channel == "03" && category == "01" {
                    continue;
                }
                let indicators: &[_] = match (channel, version) {
                    ("03", Version::V2_1_0) => &["01", "02", "03", "04", "05"],
                    ("03", _) => &[
                        "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12",
                    ],
                    _ => &["01", "02", "03", "04", "05", "06"],
                };
                cases.extend(indicators.iter().map(|indicator| Case {
                    version,
                    channel,
                    category,
                    indicator,
                }));
            }
        }
    }
    cases
}

pub(crate) fn object(value: Value) -> Fields {
    match value {
        Value::Object(object) => object,
        _ => panic!("not an object"),
    }
}

fn with(fields: &mut Fields, more: Value) {
    fields.extend(object(more));
}

pub(crate) fn extension() -> Value {
    json!({
        "name": "an extension", "id": "A000000042_extension", "criticalityIndicator": false,
        "data": {"version": 1.50, "deep": {"er": ["x"]}},
    })
}

/// The required fields of an `ARes`.
pub(crate) fn ares(case: Case, status: &str) -> Fields {
    let mut fields = object(json!({
        "messageType": "ARes",
        "messageVersion": case.version,
        "threeDSServerTransID": SERVER_ID,
        "acsTransID": ACS_ID,
        "dsTransID": DS_ID,
        "acsReferenceNumber": "acs-ref",
        "dsReferenceNumber": "ds-ref",
    }));
    let is_payment = case.category == "01";
    // `transStatus` is optional for non-payments.
    if is_payment || matches!(status, "C" | "D") {
        with(&mut fields, json!({"transStatus": status}));
    }
    if case.channel == "01" {
        with(&mut fields, json!({"sdkTransID": SDK_ID}));
    }
    if is_payment && matches!(status, "Y" | "A") {
        with(
            &mut fields,
            json!({"authenticationValue": "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA="}),
        );
    }
    if is_payment && matches!(status, "N" | "U" | "R") {
        with(&mut fields, json!({"transStatusReason": "01"}));
    }
    if matches!(status, "C" | "D") {
        with(&mut fields, json!({"acsChallengeMandated": "Y"}));
        with(&mut fields, method(case.version, status));
    }
    if status == "C" && case.channel == "02" {
        with(
            &mut fields,
            json!({"acsURL": "https://acs.example/challenge"}),
        );
    }
    if status == "C" && case.channel == "01" {
        with(
            &mut fields,
            json!({
                "acsRenderingType": {"acsInterface": "01", "acsUiTemplate": "01"},
                "acsSignedContent": "eyJhbGciOiJQUzI1NiJ9.e30.c2ln",
            }),
        );
    }
    if status == "D" {
        let info = match case.version {
            Version::V2_3_1 => json!({"text": "Open your bank's app."}),
            _ => json!("Open your bank's app."),
        };
        with(
            &mut fields,
            json!({"acsDecConInd": "Y", "cardholderInfo": info}),
        );
    }
    fields
}

fn method(version: Version, status: &str) -> Value {
    match (version, status) {
        (Version::V2_3_1, "D") => json!({"authenticationMethod": ["12"]}),
        (Version::V2_3_1, _) => json!({"authenticationMethod": ["02"]}),
        (_, "D") => json!({"authenticationType": "04"}),
        _ => json!({"authenticationType": "02"}),
    }
}

/// The statuses that an `ARes` may have if decoupled authentication is requested.
pub(crate) fn statuses(case: Case) -> Vec<&'static str> {
    let mut statuses = vec!["Y", "A", "N", "U", "R"];
    if case.channel != "03" {
        statuses.push("C");
    }
    if case.version > Version::V2_1_0 {
        statuses.extend(["I", "D"]);
    }
    statuses
}

/// The required fields of an `RReq` after an `ARes` with `ares_status`.
pub(crate) fn rreq(case: Case, ares_status: &str, status: &str) -> Fields {
    let mut fields = object(json!({
        "messageType": "RReq",
        "messageVersion": case.version,
        "messageCategory": case.category,
        "threeDSServerTransID": SERVER_ID,
        "acsTransID": ACS_ID,
        "dsTransID": DS_ID,
    }));
    let is_payment = case.category == "01";
    if is_payment {
        with(&mut fields, json!({"transStatus": status}));
    }
    if case.channel == "01" {
        with(
            &mut fields,
            json!({
                "sdkTransID": SDK_ID,
                "acsRenderingType": {"acsInterface": "02", "acsUiTemplate": "05"},
            }),
        );
    }
    if is_payment && matches!(status, "Y" | "A") {
        with(
            &mut fields,
            json!({
                "authenticationValue": "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=", "eci": "05",
            }),
        );
    }
    if is_payment && matches!(status, "N" | "U" | "R") {
        with(&mut fields, json!({"transStatusReason": "19"}));
    }
    if is_payment && matches!(status, "Y" | "N") {
        with(&mut fields, method(case.version, ares_status));
    }
    if ares_status == "C" {
        with(&mut fields, json!({"interactionCounter": "01"}));
    }
    fields
}

/// The required fields of the other messages.
pub(crate) fn small(kind: MessageKind, version: Version) -> Fields {
    let mut fields = match kind {
        MessageKind::PReq => json!({
            "threeDSServerTransID": SERVER_ID, "threeDSServerRefNumber": "ref",
        }),
        MessageKind::PRes if version == Version::V2_3_1 => json!({
            "threeDSServerTransID": SERVER_ID, "dsTransID": DS_ID,
            "dsProtocolVersions": ["2.2.0", "2.3.1"],
            "cardRangeData": [{
                "ranges": [{"startRange": "4000000000000000", "endRange": "4000009999999999"}],
                "acsProtocolVersions": [{"version": "2.2.0"}],
            }],
        }),
        MessageKind::PRes => json!({
            "threeDSServerTransID": SERVER_ID, "dsTransID": DS_ID,
            "dsStartProtocolVersion": "2.1.0", "dsEndProtocolVersion": "2.2.0",
            "cardRangeData": [{
                "startRange": "4000000000000000", "endRange": "4000009999999999",
                "acsStartProtocolVersion": "2.1.0", "acsEndProtocolVersion": "2.3.1",
            }],
        }),
        MessageKind::CReq => json!({
            "threeDSServerTransID": SERVER_ID, "acsTransID": ACS_ID, "challengeWindowSize": "03",
        }),
        MessageKind::CRes => json!({
            "threeDSServerTransID": SERVER_ID, "acsTransID": ACS_ID, "transStatus": "Y",
        }),
        MessageKind::RRes => json!({
            "threeDSServerTransID": SERVER_ID, "acsTransID": ACS_ID, "dsTransID": DS_ID,
            "resultsStatus": "01",
        }),
        MessageKind::Erro => json!({
            "errorCode": "203", "errorComponent": "D", "errorDescription": "wrong",
            "errorDetail": "acctNumber",
        }),
        _ => panic!("not a small message"),
    };
    fields["messageType"] = kind.as_str().into();
    fields["messageVersion"] = version.as_str().into();
    if kind == MessageKind::CRes && version == Version::V2_1_0 {
        fields["challengeCompletionInd"] = "Y".into();
    }
    object(fields)
}

/// Every sample, with its message type and version.
pub(crate) fn all() -> Vec<(MessageKind, Version, Fields)> {
    let mut all = Vec::new();
    for case in cases() {
        all.push((MessageKind::AReq, case.version, areq(case)));
        if case.indicator != "03" {
            continue;
        }
        for status in statuses(case) {
            all.push((MessageKind::ARes, case.version, ares(case, status)));
        }
        for status in ["Y", "A", "N", "U", "R"] {
            all.push((MessageKind::RReq, case.version, rreq(case, "C", status)));
        }
    }
    let kinds = [
        MessageKind::PReq,
        MessageKind::PRes,
        MessageKind::CReq,
        MessageKind::CRes,
        MessageKind::RRes,
        MessageKind::Erro,
    ];
    for version in Version::ALL {
        all.extend(kinds.map(|kind| (kind, version, small(kind, version))));
    }
    all
}

pub(crate) fn text(fields: &Fields) -> Vec<u8> {
    Value::Object(fields.clone()).to_string().into_bytes()
}
