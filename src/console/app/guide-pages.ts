import { parseGuide } from '#src/guide/parse.ts' with { type: 'macro' }
import type { GuideSection } from '#src/guide/tree.ts'

/** The guide, which is parsed when the console is built. */
export const guideSections: GuideSection[] = parseGuide()
