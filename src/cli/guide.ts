import { ConfigError } from '#src/config.ts'
import { findGuidePage } from '#src/guide/pages.ts'
import { contentsText, pageText } from '#src/guide/terminal.ts'

const WIDTH = 80

/** Prints a page of the guide, or its table of contents. Bold only on a terminal: https://no-color.org */
export const guide = (subject?: string): void => {
  const isBold = process.stdout.isTTY && !process.env.NO_COLOR
  const style = {
    // A terminal reports width 0 when it is unknown.
    width: Math.min(WIDTH, process.stdout.columns || WIDTH),
    bold: (text: string) => (isBold ? `\u001b[1m${text}\u001b[0m` : text),
  }
  if (subject === undefined) {
    console.log(`${contentsText(style)}\n\n\`gatehouse guide SUBJECT\` prints a page.`)
    return
  }
  const page = findGuidePage(subject)
  if (!page)
    throw new ConfigError(
      `guide: there is no such page. Pages:\n\n${contentsText({ ...style, bold: text => text })}`,
    )
  console.log(pageText(page, style))
}
