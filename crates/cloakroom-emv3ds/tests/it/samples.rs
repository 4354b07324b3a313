//! Messages written by hand from the specification, not from the tables: exactly what each must
//! have, and some of what it may have.

use cloakroom_emv3ds::{MessageKind, Version};
use serde_json::{Map, Value, json};

pub(crate) const SERVER_ID: &str = "8a880dc0-d2d2-4067-bcb1-b08d1690b26e";
pub(crate) const ACS_ID: &str = "d7c1ee99-9478-44a6-b1f2-391e29c6b340";
pub(crate) const DS_ID: &str = "f25084f0-5b16-4c0a-ae5d-b24808a95e4b";
pub(crate) const SDK_ID: &str = "b2385523-a66c-4907-ac3c-91848e8c0067";

pub(crate) type Fields = Map<String, Value>;

/// What the fields of an `AReq` depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) version: Version,
    /// App 01, browser 02, neither 03.
    pub(crate) channel: &'static str,
    /// Payment 01, else 02.
    pub(crate) category: &'static str,
    /// Of the requestor, or 3RI.
    pub(crate) indicator: &'static str,
}

/// Every version, channel, category and indicator that go together.
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

/// What an `AReq` must have in that case, and nothing else.
pub(crate) fn areq(case: Case) -> Fields {
    let mut fields = object(json!({
        "messageType": "AReq",
        "messageVersion": case.version,
        "messageCategory": case.category,
        "deviceChannel": case.channel,
        "threeDSServerTransID": SERVER_ID,
        "threeDSServerRefNumber": "3DS_LOA_SER_TEST_020200_00001",
        "threeDSServerURL": "https://vault.example/3ds/results",
        "threeDSRequestorID": "requestor-1",
        "threeDSRequestorName": "A shop",
        "threeDSRequestorURL": "https://shop.example",
        "acctNumber": "4111111111111111",
    }));
    match case.channel {
        "01" => app(&mut fields, case),
        "02" => browser(&mut fields, case),
        _ => {}
    }
    let is_merchant = case.channel == "03";
    let indicator = if is_merchant {
        "threeRIInd"
    } else {
        "threeDSRequestorAuthenticationInd"
    };
    fields.insert(indicator.to_owned(), case.indicator.into());
    if case.category == "01" {
        with(
            &mut fields,
            json!({
                "acquirerBIN": "400551",
                "acquirerMerchantID": "mid-1",
                "mcc": "5411",
                "merchantCountryCode": "826",
                "merchantName": "A shop",
            }),
        );
        if case.version == Version::V2_3_1 {
            with(
                &mut fields,
                json!({
                    "acquirerCountryCode": "276",
                    "acquirerCountryCodeSource": "01",
                }),
            );
        }
    }
    purchase(&mut fields, case);
    fields
}

fn browser(fields: &mut Fields, case: Case) {
    with(
        fields,
        json!({
            "browserAcceptHeader": "*/*",
            "browserJavaEnabled": false,
            "browserLanguage": "en-GB",
            "browserColorDepth": "24",
            "browserScreenHeight": "1080",
            "browserScreenWidth": "1920",
            "browserTZ": "-180",
            "browserUserAgent": "Mozilla/5.0",
            "threeDSCompInd": "Y",
            "notificationURL": "https://vault.example/3ds/sessions/1/challenge-notification",
        }),
    );
    if case.version > Version::V2_1_0 {
        with(fields, json!({"browserJavascriptEnabled": true}));
    }
    if case.version == Version::V2_3_1 {
        with(fields, json!({"acceptLanguage": ["en-GB", "de"]}));
    }
}

fn app(fields: &mut Fields, case: Case) {
    with(
        fields,
        json!({
            "sdkAppID": "0b1bd1b4-1b1c-4f5a-8a52-5a8ad6c1c0d5",
            "sdkEncData": "eyJhbGciOiJSU0EtT0FFUC0yNTYifQ.a.b.c.d",
            "sdkEphemPubKey": {"kty": "EC", "crv": "P-256", "x": "WWcpTjbOqiu_1aODllw5rYTq5oLXE_T0huCPjMIRbkI", "y": "Wz_7anIeadV8SJZUfr4drwjzuWoUbOsHp5GdRZBAAiw"},
            "sdkMaxTimeout": "05",
            "sdkReferenceNumber": "3DS_LOA_SDK_TEST",
            "sdkTransID": SDK_ID,
            "deviceRenderOptions": {"sdkInterface": "03", "sdkUiType": ["01", "02", "03", "04", "05"]},
        }),
    );
    if case.version == Version::V2_3_1 {
        with(fields, json!({"sdkType": "01"}));
    }
}

fn purchase(fields: &mut Fields, case: Case) {
    let is_merchant = case.channel == "03";
    let oldest = case.version == Version::V2_1_0;
    if is_merchant && oldest {
        return;
    }
    let of_indicator: &[_] = if is_merchant {
        &["01", "02", "06", "07", "08", "09", "11"]
    } else {
        &["02", "03"]
    };
    if case.category == "01" || of_indicator.contains(&case.indicator) {
        with(
            fields,
            json!({
                "purchaseAmount": "1000",
                "purchaseCurrency": "826",
                "purchaseExponent": "2",
                "purchaseDate": "20260228235959",
            }),
        );
    }
    let installment = if is_merchant { "02" } else { "03" };
    if case.indicator == installment {
        with(fields, json!({"purchaseInstalData": "12"}));
    }
    let repeated: &[_] = if is_merchant {
        &["01", "02"]
    } else {
        &["02", "03"]
    };
    if case.version < Version::V2_3_1 && repeated.contains(&case.indicator) {
        with(
            fields,
            json!({"recurringExpiry": "20281231", "recurringFrequency": "28"}),
        );
    }
}

/// What an `AReq` of all channels and versions may have.
pub(crate) fn areq_options() -> Fields {
    object(json!({
        "threeDSServerOperatorID": "operator-1",
        "cardExpiryDate": "2812",
        "acctType": "02",
        "acctID": "account-1",
        "acctInfo": {
            "chAccAgeInd": "03", "chAccDate": "20240229", "chAccChangeInd": "04",
            "chAccChange": "20250101", "chAccPwChangeInd": "05", "chAccPwChange": "20250101",
            "nbPurchaseAccount": "9999", "provisionAttemptsDay": "0", "txnActivityDay": "1",
            "txnActivityYear": "999", "paymentAccInd": "01", "paymentAccAge": "20250101",
            "shipAddressUsageInd": "04", "shipAddressUsage": "20250101",
            "shipNameIndicator": "02", "suspiciousAccActivity": "01",
        },
        "cardholderName": "Erika Mustermann",
        "email": "erika@mail.example",
        "homePhone": {"cc": "49", "subscriber": "301234567"},
        "mobilePhone": {"cc": "1", "subscriber": "123456789012345"},
        "workPhone": {"cc": "358", "subscriber": "1"},
        "billAddrLine1": "Straße 1", "billAddrLine2": "2", "billAddrLine3": "3",
        "billAddrCity": "Köln", "billAddrPostCode": "50667", "billAddrCountry": "276",
        "billAddrState": "NW",
        "shipAddrLine1": "1", "shipAddrLine2": "2", "shipAddrLine3": "3",
        "shipAddrCity": "Town", "shipAddrPostCode": "W1A 1AA", "shipAddrCountry": "826",
        "shipAddrState": "ENG",
        "transType": "01",
        "merchantRiskIndicator": {
            "deliveryEmailAddress": "to@mail.example", "deliveryTimeframe": "01",
            "giftCardAmount": "123", "giftCardCount": "01", "giftCardCurr": "978",
            "preOrderDate": "20270101", "preOrderPurchaseInd": "02", "reorderItemsInd": "01",
            "shipIndicator": "07",
        },
        "payTokenInd": true,
        "payTokenSource": "01",
        "broadInfo": {"anything": [1, {"more": null}]},
        "messageExtension": [extension()],
    }))
}

pub(crate) fn extension() -> Value {
    json!({
        "name": "an extension", "id": "A000000042_extension", "criticalityIndicator": false,
        "data": {"version": 1.50, "deep": {"er": ["x"]}},
    })
}

/// What an `ARes` must have in answer to such a request, and nothing else.
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
    // Without a payment the status itself may be missing, but then nothing else is to be seen.
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

/// Which statuses can answer such a request, if decoupled authentication is asked for.
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

/// What an `RReq` must have after that answer, and nothing else.
pub(crate) fn rreq(case: Case, answered: &str, status: &str) -> Fields {
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
        with(&mut fields, method(case.version, answered));
    }
    if answered == "C" {
        with(&mut fields, json!({"interactionCounter": "01"}));
    }
    fields
}

/// What the other messages must have.
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

/// One of everything: kind, version and what it must have.
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
