/** A page of the guide as the terminal, the development server and the console render it. */
export interface GuidePage {
  /** File name without extension, such as `backup`. */
  subject: string
  title: string
  /** One line of description for the table of contents. */
  about: string
  blocks: Block[]
}

/** Pages of the guide under one title. */
export interface GuideSection {
  title: string
  pages: GuidePage[]
}

export type Block =
  /** `id` is the anchor that GitHub gives the heading. */
  | { type: 'heading'; depth: number; id: string; text: Inline[] }
  | { type: 'paragraph'; text: Inline[] }
  | { type: 'list'; ordered: boolean; items: Inline[][] }
  | { type: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { type: 'code'; language: string; text: string }

export type Inline =
  | { type: 'text'; text: string }
  | { type: 'code'; text: string }
  | { type: 'strong'; text: Inline[] }
  | { type: 'link'; to: Target; text: Inline[] }

/** A link leads to another page of the guide, a file of the repository, or a URL. */
export type Target = { subject: string; id: string } | { file: string } | { url: string }

/** Returns the text without formatting. */
export const plain = (text: Inline[]): string =>
  text.map(part => (typeof part.text === 'string' ? part.text : plain(part.text))).join('')
