import { parseGuide } from './parse.ts' with { type: 'macro' }
import type { Page, Section } from './tree.ts'

export const sections: Section[] = parseGuide()

export const pageOf = (subject: string): Page | undefined =>
  sections.flatMap(({ pages }) => pages).find(page => page.subject === subject)
