/**
 * Changes A to Z only. `toLowerCase` also maps other letters to these, such as the Kelvin sign to `k`, so two
 * addresses would become one.
 */
export const asciiLowerCase = (text: string): string =>
  text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
