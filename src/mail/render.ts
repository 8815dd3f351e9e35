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

/** The content of a mail. */
export interface MailContent {
  kind: MailKind
  locale: string
  /** The organization's display name; `name` is the user's. */
  brand: string
  name: string
  /** The organization's colour, as `#rrggbb`. */
  accent?: string | undefined
  /** Parameters of the texts, beside `brand` and `name`. */
  data: Record<string, string>
  /** True when the address to verify replaces another one. */
  is_change?: boolean
  /** Target of the button. */
  url?: string
}

/** Renders a mail as plain text and as HTML with the same content. */
export const renderMail = (content: MailContent): Omit<Mail, 'to'> => {
  const { kind, locale, brand, name, accent, data } = content
  const t = translator(locale)
  const params = { ...data, brand, name }
  const style = `${files['mail.css']}${accent ? accentMailStyle(accent) : ''}`
  const view = { ...content, params, t, dir: direction(locale), style }
  return {
    subject: t(`mail.${kind}.subject`, params).replace(/\s+/g, ' '),
    text: text.render('text', view),
    html: html.render('html', view),
  }
}
