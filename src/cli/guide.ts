import { ConfigError } from '#src/config.ts'
import { findGuidePage } from '#src/guide/pages.ts'
import { contentsText, linesWith, pageText } from '#src/guide/terminal.ts'
import { print } from './print.ts'

/** Maximum columns, even on a wider terminal, because long lines are hard to read. */
const WIDTH = 80

/**
 * Prints a page of the guide, the lines that contain a word, or the table of contents. A terminal gets bold
 * text if NO_COLOR is not set: https://no-color.org
 */
export const guide = (subject?: string): void => {
  const isBold = process.stdout.isTTY && !process.env.NO_COLOR
  const style = {
    // A terminal that does not know its width reports 0.
    width: Math.min(WIDTH, process.stdout.columns || WIDTH),
    bold: (text: string) => (isBold ? `\u001b[1m${text}\u001b[0m` : text),
  }
  if (subject === undefined) {
    print(
      `${contentsText(style)}\n\n\`gatehouse guide SUBJECT\` prints a page, \`gatehouse guide WORD\` finds a word.`,
    )
    return
  }
  const page = findGuidePage(subject)
  const found = page ? pageText(page, style) : linesWith(subject, style)
  if (!found)
    throw new ConfigError(
      `guide: no page has this name or contains this word. Pages:\n\n${contentsText({ ...style, bold: text => text })}`,
    )
  print(found)
}
