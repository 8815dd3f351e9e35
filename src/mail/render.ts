import { Eta } from 'eta/core'
import type { Mail } from '#src/context.ts'
import { direction } from '#src/http/locale.ts'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }
import { accentMailStyle } from '#src/pages/accent.ts'
import { translator } from '#src/pages/translate.ts'
import type { MailKind } from '#src/storage/mail-kinds.ts'

const files = embed('templates/mail', ['.eta', '.css'])

const reader = (autoEscape: boolean): Eta => {
  const eta = new Eta({ autoEscape, cache: true })
  eta.resolvePath = name => `${name}.eta`
  eta.readFile = path => files[path] ?? ''
  return eta
}
const html = reader(true)
const text = reader(false)

/** What the words of a mail of this kind speak of. */
export interface Letter {
  kind: MailKind
  locale: string
  /** The organization's display name, and the person's. */
  brand: string
  name: string
  /** The organization's colour, as `#rrggbb`. */
  accent?: string | undefined
  /** What is told: fills the holes of the texts, as do brand and name. */
  data: Record<string, string>
  /** The address to be verified takes the place of another one. */
  is_change?: boolean
  /** Where the one button leads. */
  url?: string
}

/** Both forms say the same: nobody has to read the HTML one. */
export const renderMail = (letter: Letter): Omit<Mail, 'to'> => {
  const { kind, locale, brand, name, accent, data } = letter
  const t = translator(locale)
  const holes = { ...data, brand, name }
  const style = `${files['mail.css']}${accent ? accentMailStyle(accent) : ''}`
  const view = { ...letter, holes, t, dir: direction(locale), style }
  return {
    subject: t(`mail.${kind}.subject`, holes).replace(/\s+/g, ' '),
    text: text.render('text', view),
    html: html.render('html', view),
  }
}
