//! Samples of the `AReq`.

use cloakroom_emv3ds::Version;
use serde_json::json;

use super::{Case, Fields, SDK_ID, SERVER_ID, extension, object, with};

/// The required fields of an `AReq`.
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
    let is_three_ri = case.channel == "03";
    let indicator = if is_three_ri {
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
            "sdkEphemPubKey": {
                "kty": "EC", "crv": "P-256",
                "x": "WWcpTjbOqiu_1aODllw5rYTq5oLXE_T0huCPjMIRbkI",
                "y": "Wz_7anIeadV8SJZUfr4drwjzuWoUbOsHp5GdRZBAAiw",
            },
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
    let is_three_ri = case.channel == "03";
    let oldest = case.version == Version::V2_1_0;
    if is_three_ri && oldest {
        return;
    }
    let of_indicator: &[_] = if is_three_ri {
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
    let installment = if is_three_ri { "02" } else { "03" };
    if case.indicator == installment {
        with(fields, json!({"purchaseInstalData": "12"}));
    }
    let repeated: &[_] = if is_three_ri {
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

/// Optional fields of an `AReq` in all channels and versions.
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
