import { parseGuide } from './parse.ts' with { type: 'macro' }
import type { GuidePage, GuideSection } from './tree.ts'

export const guideSections: readonly GuideSection[] = Object.freeze(parseGuide())

/** Returns the page of a subject, such as `backup`. */
export const findGuidePage = (subject: string): GuidePage | undefined =>
  guideSections.flatMap(({ pages }) => pages).find(page => page.subject === subject)
