import type { DevState } from '#src/dev/controls.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { type Html, markup } from './markup.ts'
import type { DevPage } from './page.ts'

export const MAILBOX = '/dev/mailbox'

const URLS = /(https?:\/\/\S+)/

/** Turns the URLs of a plain text into links. */
const linked = (text: string): Html[] =>
  text.split(URLS).map((part, i) => (i % 2 === 1 ? markup`<a href="${part}">${part}</a>` : markup`${part}`))

/** Returns the page of the captured mail, newest first. */
export const mailboxPage = async ({ context, mail }: DevState): Promise<DevPage> => {
  await deliverMails(context)
  const mails = mail.mails.map((one, i) => ({ ...one, number: i + 1 })).reverse()
  return {
    title: 'Mailbox',
    current: MAILBOX,
    body:
      mails.length === 0
        ? markup`<p class="muted">No mail was sent. Ask for a new password, for example, and reload this page.</p>`
        : markup`<form method="post" action="/dev/"><button class="button secondary small" name="action" value="clear_mail">Delete all</button></form>
${mails.map(
  ({ to, subject, text, number }) => markup`<article class="mail">
<h2>${subject}</h2><p class="muted">To ${to} · <a href="${MAILBOX}/${number}">Open in a page of its own</a></p>
<iframe src="${MAILBOX}/${number}" title="${subject}" loading="lazy"></iframe>
<details><summary>Plain text</summary><pre tabindex="0">${linked(text)}</pre></details></article>`,
)}`,
  }
}

/**
 * Returns the HTML part of a captured mail. Its policy allows inline styles, and pictures from this server
 * and from data URLs, but no scripts and no other files.
 */
export const mailPage = ({ mail }: DevState, number: string): Response | undefined => {
  const found = /^\d{1,4}$/.test(number) ? mail.mails[Number(number) - 1] : undefined
  return (
    found &&
    // Links of the mail open outside the frame, because account pages refuse to be framed.
    new Response(found.html.replace('<head>', '<head><base target="_blank">'), {
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'content-security-policy':
          "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; sandbox allow-popups allow-popups-to-escape-sandbox; base-uri 'none'; frame-ancestors 'self'",
      },
    })
  )
}
