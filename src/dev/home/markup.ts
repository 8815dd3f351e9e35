/** HTML that is already escaped. */
export class Html {
  readonly #text: string
  constructor(text: string) {
    this.#text = text
  }
  toString(): string {
    return this.#text
  }
}

type Part = Html | string | number | undefined | readonly Part[]

const rendered = (part: Part): string => {
  if (part instanceof Html) return String(part)
  if (typeof part === 'object') return part.map(rendered).join('')
  return part === undefined ? '' : Bun.escapeHTML(String(part))
}

/** Template tag that escapes each value. A value that this tag has returned is not escaped again. */
export const markup = (parts: TemplateStringsArray, ...values: Part[]): Html =>
  new Html(parts.reduce((text, part, i) => text + rendered(values[i - 1]) + part))
