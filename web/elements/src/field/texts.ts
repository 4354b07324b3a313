// Texts that a cardholder reads or hears.

export interface Texts {
  cardNumber: string;
  expirationDate: string;
  securityCode: string;
  text: string;
  card: string;
  invalid: (label: string) => string;
  incomplete: (label: string) => string;
  network: string;
  copy: string;
  copied: string;
  brand: (name: string) => string;
}

const LANGUAGES: Record<string, Texts> = {
  en: {
    cardNumber: "Card number",
    expirationDate: "Expiration date",
    securityCode: "Security code",
    text: "Text",
    card: "Card details",
    invalid: (label) => `${label} is invalid.`,
    incomplete: (label) => `${label} is incomplete.`,
    network: "Card network",
    copy: "Copy",
    copied: "Copied",
    brand: (name) => `${name} card`,
  },
  de: {
    cardNumber: "Kartennummer",
    expirationDate: "Ablaufdatum",
    securityCode: "Prüfnummer",
    text: "Text",
    card: "Kartendaten",
    invalid: (label) => `${label} ist ungültig.`,
    incomplete: (label) => `${label} ist unvollständig.`,
    network: "Kartennetzwerk",
    copy: "Kopieren",
    copied: "Kopiert",
    brand: (name) => `${name}-Karte`,
  },
  fr: {
    cardNumber: "Numéro de carte",
    expirationDate: "Date d'expiration",
    securityCode: "Code de sécurité",
    text: "Texte",
    card: "Informations de carte",
    invalid: (label) => `${label} : valeur non valide.`,
    incomplete: (label) => `${label} : valeur incomplète.`,
    network: "Réseau de la carte",
    copy: "Copier",
    copied: "Copié",
    brand: (name) => `Carte ${name}`,
  },
  es: {
    cardNumber: "Número de tarjeta",
    expirationDate: "Fecha de caducidad",
    securityCode: "Código de seguridad",
    text: "Texto",
    card: "Datos de la tarjeta",
    invalid: (label) => `${label}: valor no válido.`,
    incomplete: (label) => `${label}: valor incompleto.`,
    network: "Red de la tarjeta",
    copy: "Copiar",
    copied: "Copiado",
    brand: (name) => `Tarjeta ${name}`,
  },
  pt: {
    cardNumber: "Número do cartão",
    expirationDate: "Data de validade",
    securityCode: "Código de segurança",
    text: "Texto",
    card: "Dados do cartão",
    invalid: (label) => `${label}: valor inválido.`,
    incomplete: (label) => `${label}: valor incompleto.`,
    network: "Bandeira do cartão",
    copy: "Copiar",
    copied: "Copiado",
    brand: (name) => `Cartão ${name}`,
  },
};

export function textsFor(language: string): { texts: Texts; language: string } {
  const name = language.toLowerCase().split("-")[0];
  return Object.hasOwn(LANGUAGES, name)
    ? { texts: LANGUAGES[name], language: name }
    : { texts: LANGUAGES.en, language: "en" };
}
