// The default theme, without its web fonts, the form of the capacity page, and samples that change language together.

import theme from "vitepress/theme-without-fonts";

import CapacityCalculator from "../capacity/CapacityCalculator.vue";
import "./style.css";

let isFollowing = false;

/** Selects the language of one sample in all samples of the page. */
function selectLanguage({ target }) {
  if (isFollowing || !target.matches?.(".vp-code-group input")) return;
  const languageOf = ({ id }) => document.querySelector(`label[for="${id}"]`)?.textContent;
  const top = target.parentElement.getBoundingClientRect().top;
  isFollowing = true;
  for (const input of document.querySelectorAll(".vp-code-group input")) {
    if (!input.checked && languageOf(input) === languageOf(target)) input.click();
  }
  isFollowing = false;
  // The samples above have another height now.
  window.scrollBy({ top: target.parentElement.getBoundingClientRect().top - top, behavior: "instant" });
}

export default {
  extends: theme,
  enhanceApp({ app }) {
    app.component("CapacityCalculator", CapacityCalculator);
    if (typeof document !== "undefined") document.addEventListener("change", selectLanguage);
  },
};
