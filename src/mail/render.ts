import { Eta } from 'eta/core'
import type { Mail } from '#src/context.ts'
import { direction } from '#src/http/locale.ts'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }
import { accentTokens } from '#src/pages/accent.ts'
import { translator } from '#src/pages/translate.ts'
import type { MailKind } from '#src/storage/mail-kinds.ts'

const files = Object.freeze(embed('templates/mail', ['.eta', '.css']))

const reader = (autoEscape: boolean): Eta => {
  const eta = new Eta({ autoEscape, cache: true })
  eta.resolvePath = name => `${name}.eta`
  eta.readFile = path => files[path] ?? ''
  return eta
}
const html = reader(true)
const text = reader(false)

/** Replaces custom properties with their colours, because few mail programs support custom properties. */
const filled = (css: string, tokens: Record<string, string>): string =>
  css.replace(/var\(--([\w-]+)\)/g, (_, name) => tokens[name] ?? '')

const [lightRules = '', darkRules = ''] = (files['mail.css'] ?? '').split(/(?=@media)/)
const declarations = [...lightRules.replace(/\/\*.*?\*\//s, '').matchAll(/([^{}]+)\{([^}]*)\}/g)].map(
  ([, selector = '', rules = '']) => [selector.trim(), rules.replace(/\s+/g, ' ').trim()] as const,
)

/**
 * The colour of an organization that has chosen none. Mails have no logo, because few mail programs show SVG,
 * and a remote picture would reveal when a mail is read.
 */
const ACCENT = '#2b50d8'

/**
 * Returns the `style` of each selector, and the stylesheet of the dark scheme, which overrides these styles.
 */
const stylesOf = (accent: string) => {
  const [light, dark] = accentTokens(accent)
  return {
    styles: Object.fromEntries(declarations.map(([selector, rules]) => [selector, filled(rules, light)])),
    dark: filled(darkRules, dark).replaceAll(';', ' !important;'),
  }
}

const labels = { device: 'mail.device', place: 'mail.place', application: 'mail.application' } as const

/** The content of a mail. */
export interface MailContent {
  kind: MailKind
  locale: string
  /** The organization's display name. `name` is the name or the address of the recipient. */
  brand: string
  name: string
  /** The organization's colour, as `#rrggbb`. */
  accent?: string | undefined
  /** Parameters of the texts, in addition to `brand` and `name`. */
  data: Record<string, string>
  /** True when the address to verify will replace the user's current address. */
  is_change?: boolean
  /** Origin of the reported change; empty and undefined fields are left out. */
  details?: Partial<Record<keyof typeof labels, string | undefined>>
  /** A code that the user types. The mail shows it apart from the text. */
  code?: string
  /** Target of the button. */
  url?: string | undefined
}

/** Texts of the buttons of mails that are not notices. */
const linkButtons = {
  reset_password: 'mail.reset_password.button',
  verify_email: 'mail.verify_email.button',
  invitation: 'mail.invitation.button',
  registration: 'mail.invitation.button',
  sign_in_code: 'mail.sign_in_button',
  registration_known: 'mail.sign_in_button',
  registration_approved: 'mail.sign_in_button',
} as const

/**
 * True for notices, which report an event and need no answer. Their button, if they have one, leads to the
 * security page.
 */
export const isNotice = (kind: MailKind): kind is Exclude<MailKind, keyof typeof linkButtons> =>
  !(kind in linkButtons)

/** Renders a mail as plain text and as HTML with the same content. */
export const renderMail = (content: MailContent): Omit<Mail, 'to'> => {
  const { kind, locale, brand, name, data } = content
  const t = translator(locale)
  const params = { ...data, brand, name }
  const view = {
    ...content,
    params,
    t,
    dir: direction(locale),
    ...stylesOf(content.accent ?? ACCENT),
    is_notice: isNotice(kind),
    body: t(content.is_change ? 'mail.verify_email.text_change' : `mail.${kind}.text`, params),
    note: t(`mail.${kind}.note`, params),
    details: (['device', 'place', 'application'] as const).flatMap(name => {
      const value = content.details?.[name]
      return value ? [{ label: t(labels[name]), value }] : []
    }),
    button: t(isNotice(kind) ? 'mail.security_button' : linkButtons[kind]),
  }
  return {
    subject: t(`mail.${kind}.subject`, params).replace(/\s+/g, ' '),
    text: text.render('text', view),
    html: html.render('html', view),
  }
}
