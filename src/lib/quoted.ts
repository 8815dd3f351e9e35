/**
 * Characters that JSON leaves as they are, but that YAML 1.1 does not read as text: its line breaks U+0085,
 * U+2028 and U+2029 (https://yaml.org/spec/1.1/#b-line-feed), byte order marks, and those that no YAML file
 * may have (https://yaml.org/spec/1.1/#c-printable).
 */
const foreign = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g

/** Returns a text in double quotes, for JSON, YAML 1.1 and YAML 1.2. */
export const inDoubleQuotes = (text: string): string =>
  JSON.stringify(text).replace(foreign, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
