//! The message catalog: every text that a cardholder reads, in every language.

use serde_json::{Map, Value};

use crate::language::Language;

/// Lists every message once: variant, key in scripts, and its text in English, German, French, Spanish and Portuguese.
macro_rules! messages {
    ($($variant:ident $key:literal: $en:literal, $de:literal, $fr:literal, $es:literal, $pt:literal;)+) => {
        /// A text of a page. `{merchant}` and other words in braces are replaced by values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Message { $($variant),+ }

        impl Message {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name in the data of scripts.
            pub fn key(self) -> &'static str {
                match self { $(Self::$variant => $key),+ }
            }

            pub fn text(self, language: Language) -> &'static str {
                let [english, german, french, spanish, portuguese] = match self {
                    $(Self::$variant => [$en, $de, $fr, $es, $pt]),+
                };
                match language {
                    Language::English => english,
                    Language::German => german,
                    Language::French => french,
                    Language::Spanish => spanish,
                    Language::Portuguese => portuguese,
                }
            }
        }
    };
}

messages! {
    ConfirmTitle "confirm_title":
        "Confirm your payment", "Zahlung bestätigen", "Confirmez votre paiement",
        "Confirme su pago", "Confirme o seu pagamento";
    StepPrepare "step_prepare":
        "Connect securely", "Sicher verbinden", "Connexion sécurisée", "Conexión segura", "Ligação segura";
    StepBank "step_bank":
        "Check with your bank", "Prüfung durch Ihre Bank", "Vérification par votre banque",
        "Comprobación con su banco", "Verificação com o seu banco";
    StepReturn "step_return":
        "Return to {merchant}", "Zurück zu {merchant}", "Retour vers {merchant}",
        "Volver a {merchant}", "Voltar a {merchant}";
    Preparing "preparing":
        "Setting up a secure connection...", "Sichere Verbindung wird hergestellt ...",
        "Établissement d’une connexion sécurisée...", "Estableciendo una conexión segura...",
        "A estabelecer uma ligação segura...";
    ContactingBank "contacting_bank":
        "Contacting your bank to confirm this payment...",
        "Ihre Bank wird kontaktiert, um diese Zahlung zu bestätigen ...",
        "Nous contactons votre banque pour confirmer ce paiement...",
        "Contactando con su banco para confirmar este pago...",
        "A contactar o seu banco para confirmar este pagamento...";
    ChallengeShown "challenge_shown":
        "Your bank asks you to confirm this payment below.",
        "Ihre Bank bittet Sie, diese Zahlung unten zu bestätigen.",
        "Votre banque vous demande de confirmer ce paiement ci-dessous.",
        "Su banco le pide que confirme este pago a continuación.",
        "O seu banco pede que confirme este pagamento abaixo.";
    ChallengeFrame "challenge_frame":
        "Payment authentication by your bank", "Zahlungsbestätigung durch Ihre Bank",
        "Authentification du paiement par votre banque", "Autenticación del pago por su banco",
        "Autenticação do pagamento pelo seu banco";
    Returning "returning":
        "Returning to {merchant}...", "Sie werden zu {merchant} zurückgeleitet ...",
        "Retour vers {merchant}...", "Volviendo a {merchant}...", "A voltar a {merchant}...";
    NotConfirmed "not_confirmed":
        "We could not confirm this payment. Please return to the merchant’s website and try again.",
        "Diese Zahlung konnte nicht bestätigt werden. Bitte kehren Sie zur Website des Händlers zurück und versuchen Sie es erneut.",
        "Nous n’avons pas pu confirmer ce paiement. Veuillez revenir sur le site du marchand et réessayer.",
        "No hemos podido confirmar este pago. Vuelva al sitio web del comercio e inténtelo de nuevo.",
        "Não foi possível confirmar este pagamento. Volte ao site do comerciante e tente novamente.";
    OtherWindow "other_window":
        "We could not confirm this payment. It was already opened in another window; continue there, or return to the merchant’s website.",
        "Diese Zahlung konnte nicht bestätigt werden. Sie wurde bereits in einem anderen Fenster geöffnet; fahren Sie dort fort oder kehren Sie zur Website des Händlers zurück.",
        "Nous n’avons pas pu confirmer ce paiement. Il est déjà ouvert dans une autre fenêtre ; continuez là-bas ou revenez sur le site du marchand.",
        "No hemos podido confirmar este pago. Ya se abrió en otra ventana; continúe allí o vuelva al sitio web del comercio.",
        "Não foi possível confirmar este pagamento. Já foi aberto noutra janela; continue nessa janela ou volte ao site do comerciante.";
    TryAgain "try_again":
        "Try again", "Erneut versuchen", "Réessayer", "Intentar de nuevo", "Tentar novamente";
    CancelAndReturn "cancel_and_return":
        "Cancel and return to {merchant}", "Abbrechen und zurück zu {merchant}",
        "Annuler et revenir vers {merchant}", "Cancelar y volver a {merchant}", "Cancelar e voltar a {merchant}";
    CancelQuestion "cancel_question":
        "Cancel this payment?", "Diese Zahlung abbrechen?", "Annuler ce paiement ?",
        "¿Cancelar este pago?", "Cancelar este pagamento?";
    CancelEffect "cancel_effect":
        "You will return to {merchant}. Your bank may still show this payment for a short time.",
        "Sie kehren zu {merchant} zurück. Ihre Bank zeigt diese Zahlung möglicherweise noch kurze Zeit an.",
        "Vous reviendrez vers {merchant}. Votre banque peut encore afficher ce paiement pendant un court instant.",
        "Volverá a {merchant}. Es posible que su banco siga mostrando este pago durante un breve tiempo.",
        "Voltará a {merchant}. O seu banco pode ainda mostrar este pagamento durante algum tempo.";
    CancelYes "cancel_yes":
        "Cancel payment", "Zahlung abbrechen", "Annuler le paiement", "Cancelar el pago", "Cancelar o pagamento";
    CancelNo "cancel_no":
        "Continue with payment", "Mit der Zahlung fortfahren", "Poursuivre le paiement",
        "Continuar con el pago", "Continuar com o pagamento";
    DeviceTitle "device_title":
        "Device verification", "Geräteprüfung", "Vérification de l’appareil",
        "Verificación del dispositivo", "Verificação do dispositivo";
    VerifyingDevice "verifying_device":
        "Verifying your device...", "Ihr Gerät wird geprüft ...", "Vérification de votre appareil...",
        "Verificando su dispositivo...", "A verificar o seu dispositivo...";
    ChallengeTitle "challenge_title":
        "Payment authentication", "Zahlungsbestätigung", "Authentification du paiement",
        "Autenticación del pago", "Autenticação do pagamento";
    OpeningBank "opening_bank":
        "Opening your bank’s page...", "Die Seite Ihrer Bank wird geöffnet ...",
        "Ouverture de la page de votre banque...", "Abriendo la página de su banco...",
        "A abrir a página do seu banco...";
    PleaseWait "please_wait":
        "Please wait...", "Bitte warten ...", "Veuillez patienter...", "Espere, por favor...", "Aguarde...";
    NoAction "no_action":
        "No action is required. You can close this page.",
        "Sie müssen nichts weiter tun. Sie können diese Seite schließen.",
        "Aucune action n’est requise. Vous pouvez fermer cette page.",
        "No es necesaria ninguna acción. Puede cerrar esta página.",
        "Não é necessária nenhuma ação. Pode fechar esta página.";
    ErrorTitle "error_title":
        "This page cannot be shown", "Diese Seite kann nicht angezeigt werden",
        "Cette page ne peut pas être affichée", "No se puede mostrar esta página",
        "Não é possível mostrar esta página";
    ErrorNotFound "error_not_found":
        "The link is invalid or has expired. Please return to the merchant’s website and start again.",
        "Der Link ist ungültig oder abgelaufen. Bitte kehren Sie zur Website des Händlers zurück und beginnen Sie erneut.",
        "Le lien n’est pas valide ou a expiré. Veuillez revenir sur le site du marchand et recommencer.",
        "El enlace no es válido o ha caducado. Vuelva al sitio web del comercio y empiece de nuevo.",
        "A ligação é inválida ou expirou. Volte ao site do comerciante e recomece.";
    ErrorLimit "error_limit":
        "There were too many requests. Please wait a moment and try again.",
        "Es gab zu viele Anfragen. Bitte warten Sie einen Moment und versuchen Sie es erneut.",
        "Trop de requêtes ont été envoyées. Veuillez patienter un instant et réessayer.",
        "Ha habido demasiadas solicitudes. Espere un momento e inténtelo de nuevo.",
        "Houve demasiados pedidos. Aguarde um momento e tente novamente.";
    ErrorServer "error_server":
        "The service is temporarily unavailable. Please try again.",
        "Der Dienst ist vorübergehend nicht verfügbar. Bitte versuchen Sie es erneut.",
        "Le service est temporairement indisponible. Veuillez réessayer.",
        "El servicio no está disponible temporalmente. Inténtelo de nuevo.",
        "O serviço está temporariamente indisponível. Tente novamente.";
    Reference "reference":
        "Reference", "Referenz", "Référence", "Referencia", "Referência";
    Amount "amount":
        "Amount", "Betrag", "Montant", "Importe", "Montante";
    CardTitle "card_title":
        "Enter your card details", "Kartendaten eingeben", "Saisissez les informations de votre carte",
        "Introduzca los datos de su tarjeta", "Introduza os dados do seu cartão";
    CardNumber "card_number":
        "Card number", "Kartennummer", "Numéro de carte", "Número de tarjeta", "Número do cartão";
    ExpirationDate "expiration_date":
        "Expiration date", "Ablaufdatum", "Date d’expiration", "Fecha de caducidad", "Data de validade";
    ExpirationHint "expiration_hint":
        "MM/YY", "MM/JJ", "MM/AA", "MM/AA", "MM/AA";
    SecurityCode "security_code":
        "Security code", "Prüfnummer", "Code de sécurité", "Código de seguridad", "Código de segurança";
    SecurityCodeHint "security_code_hint":
        "{count} digits", "{count} Ziffern", "{count} chiffres", "{count} dígitos", "{count} dígitos";
    CardholderName "cardholder_name":
        "Name on card", "Name auf der Karte", "Nom figurant sur la carte", "Nombre en la tarjeta", "Nome no cartão";
    Required "required":
        "{field} is required.", "{field} ist erforderlich.", "{field} : champ obligatoire.",
        "{field}: campo obligatorio.", "{field}: campo obrigatório.";
    Incomplete "incomplete":
        "{field} is incomplete.", "{field} ist unvollständig.", "{field} : valeur incomplète.",
        "{field}: valor incompleto.", "{field}: valor incompleto.";
    Invalid "invalid":
        "{field} is invalid.", "{field} ist ungültig.", "{field} : valeur non valide.",
        "{field}: valor no válido.", "{field}: valor inválido.";
    Submit "submit":
        "Submit card", "Karte übermitteln", "Envoyer la carte", "Enviar tarjeta", "Enviar cartão";
    Submitting "submitting":
        "Submitting...", "Wird übermittelt ...", "Envoi en cours...", "Enviando...", "A enviar...";
    Submitted "submitted":
        "Your card details were submitted.", "Ihre Kartendaten wurden übermittelt.",
        "Les informations de votre carte ont été envoyées.", "Los datos de su tarjeta se han enviado.",
        "Os dados do seu cartão foram enviados.";
    NotSubmitted "not_submitted":
        "Your card details could not be submitted. Please try again.",
        "Ihre Kartendaten konnten nicht übermittelt werden. Bitte versuchen Sie es erneut.",
        "Les informations de votre carte n’ont pas pu être envoyées. Veuillez réessayer.",
        "No se han podido enviar los datos de su tarjeta. Inténtelo de nuevo.",
        "Não foi possível enviar os dados do seu cartão. Tente novamente.";
    CorrectFields "correct_fields":
        "Please correct the marked fields.", "Bitte korrigieren Sie die markierten Felder.",
        "Veuillez corriger les champs signalés.", "Corrija los campos marcados.", "Corrija os campos assinalados.";
    TooManyAttempts "too_many_attempts":
        "There were too many attempts. Please wait a few minutes and try again.",
        "Es gab zu viele Versuche. Bitte warten Sie einige Minuten und versuchen Sie es erneut.",
        "Trop de tentatives ont été effectuées. Veuillez patienter quelques minutes et réessayer.",
        "Ha habido demasiados intentos. Espere unos minutos e inténtelo de nuevo.",
        "Houve demasiadas tentativas. Aguarde alguns minutos e tente novamente.";
    CompleteTitle "complete_title":
        "Card details received", "Kartendaten erhalten", "Informations de carte reçues",
        "Datos de la tarjeta recibidos", "Dados do cartão recebidos";
    ExpiredTitle "expired_title":
        "This page has expired", "Diese Seite ist abgelaufen", "Cette page a expiré",
        "Esta página ha caducado", "Esta página expirou";
    ExpiredText "expired_text":
        "Your card details were not submitted. Please return to {merchant} and start again.",
        "Ihre Kartendaten wurden nicht übermittelt. Bitte kehren Sie zu {merchant} zurück und beginnen Sie erneut.",
        "Les informations de votre carte n’ont pas été envoyées. Veuillez revenir vers {merchant} et recommencer.",
        "Los datos de su tarjeta no se han enviado. Vuelva a {merchant} y empiece de nuevo.",
        "Os dados do seu cartão não foram enviados. Volte a {merchant} e recomece.";
    ScriptRequired "script_required":
        "This page requires JavaScript. Please enable it and reload the page.",
        "Diese Seite benötigt JavaScript. Bitte aktivieren Sie es und laden Sie die Seite neu.",
        "Cette page nécessite JavaScript. Veuillez l’activer et recharger la page.",
        "Esta página requiere JavaScript. Actívelo y vuelva a cargar la página.",
        "Esta página requer JavaScript. Ative-o e recarregue a página.";
    CardHandling "card_handling":
        "Your card details are encrypted and stored for {merchant}.",
        "Ihre Kartendaten werden verschlüsselt und für {merchant} gespeichert.",
        "Les informations de votre carte sont chiffrées et conservées pour {merchant}.",
        "Los datos de su tarjeta se cifran y se guardan para {merchant}.",
        "Os dados do seu cartão são encriptados e guardados para {merchant}.";
    Brand "brand":
        "Card brand: {brand}", "Kartenmarke: {brand}", "Marque de la carte : {brand}",
        "Marca de la tarjeta: {brand}", "Marca do cartão: {brand}";
}

impl Message {
    /// The text with the words in braces replaced, each once and in one pass: a value that contains braces is not
    /// replaced again.
    pub fn fill(self, language: Language, values: &[(&str, &str)]) -> String {
        let mut filled = String::new();
        let mut rest = self.text(language);
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            let value = values.iter().find(|(known, _)| *known == name);
            filled.push_str(value.map_or("", |(_, value)| value));
            rest = after;
        }
        filled.push_str(rest);
        filled
    }
}

/// Messages for a script, by their keys, with the name of the merchant.
pub fn catalog(messages: &[Message], language: Language, merchant: &str) -> Value {
    let texts = messages.iter().map(|message| {
        // Scripts replace the other words themselves.
        let parts = [
            ("merchant", merchant),
            ("field", "{field}"),
            ("count", "{count}"),
            ("brand", "{brand}"),
        ];
        (
            message.key().to_owned(),
            message.fill(language, &parts).into(),
        )
    });
    Value::Object(texts.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn placeholders(text: &str) -> BTreeSet<&str> {
        let parts = text.split('{').skip(1);
        parts
            .filter_map(|part| Some(part.split_once('}')?.0))
            .collect()
    }

    #[test]
    fn every_language_has_every_message_with_the_same_placeholders() {
        let mut keys = BTreeSet::new();
        for message in Message::ALL {
            assert!(keys.insert(message.key()), "{message:?}");
            let english = message.text(Language::English);
            for language in Language::ALL {
                let text = message.text(language);
                assert!(!text.trim().is_empty(), "{message:?} {language:?}");
                assert_eq!(
                    placeholders(text),
                    placeholders(english),
                    "{message:?} {language:?}"
                );
                // Apostrophes and quotes in their typographic form need no escape.
                assert!(
                    !text.contains(['<', '>', '&', '"', '\'']),
                    "{message:?} {language:?}"
                );
            }
            let translations: BTreeSet<&str> =
                Language::ALL.map(|language| message.text(language)).into();
            assert!(translations.len() >= 3, "{message:?} is not translated");
        }
    }

    #[test]
    fn values_are_inserted_once() {
        let name = "{merchant} & {count}";
        let text = Message::Returning.fill(Language::English, &[("merchant", name)]);
        assert_eq!(text, "Returning to {merchant} & {count}...");
    }
}
