import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { confirmation, openRenewal, renewal } from './api.ts'
import { Confirm, Dialog } from './dialogs.tsx'
import { isWithin } from './families.tsx'
import { useObject } from './hooks.ts'
import { Icon } from './icons.tsx'
import { type Me, me } from './me.ts'
import { menu } from './menu.ts'
import { openPalette, Palette } from './palette.tsx'
import { Avatar, Failure } from './parts.tsx'
import { leaving, path } from './router.ts'
import { person, signInAnew } from './session.ts'
import { Toast } from './toast.tsx'
import { words } from './words.ts'

const isOwnOnly = ({ permissions }: Me): boolean => permissions.every(name => name.startsWith('profile:'))

/** Shows the logo of Gatehouse. */
export const Gate = () => (
  <svg class="gate" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" />
    <path d="M8.5 24.5V15a7.5 7.5 0 0 1 15 0v9.5M13.5 8.8V19M18.5 8.8V19M9 15.5h14" />
  </svg>
)

/** Asks the person to sign in again in a separate window, so that the screen stays. */
const RenewalDialog = () => {
  const asked = renewal.value
  if (!asked) return null
  const { renewal: text, common } = words
  const isStepUp = asked.reason === 'step_up'
  return (
    <Dialog title={isStepUp ? text.step_up : text.ended} onClose={() => asked.answer(false)}>
      <p>{isStepUp ? text.step_upText : text.endedText}</p>
      <div class="dialog-actions">
        <button type="button" onClick={() => asked.answer(false)}>
          {common.cancel}
        </button>
        <button type="button" class="primary" onClick={() => void openRenewal(asked)}>
          {text.go}
        </button>
      </div>
    </Dialog>
  )
}

/**
 * Asks for confirmation of a change that would leave an organization without an administrator. The person
 * confirms by typing the name of the changed user or group.
 */
const LastAdmin = () => {
  const asked = confirmation.value
  return (
    asked && (
      <Confirm
        {...words.lastAdmin}
        typed={asked.name}
        isBusy={false}
        onConfirm={() => asked.answer(true)}
        onClose={() => asked.answer(false)}
      />
    )
  )
}

/** Asks whether unsaved changes may be lost. */
const Leave = () => {
  const step = leaving.value
  const close = () => {
    leaving.value = undefined
  }
  return (
    step && (
      <Confirm
        {...words.leave}
        isBusy={false}
        onConfirm={() => {
          close()
          step()
        }}
        onClose={close}
      />
    )
  )
}

/** Shows the menu, search, account and notices of the console around the current screen. */
export const Frame = ({ children }: { children: ComponentChildren }) => {
  const { nav } = words
  const [isOpen, setOpen] = useState(false)
  const who = person.value
  const read = useObject<Me>('/me')
  useEffect(() => {
    if (read.data) me.value = read.data
  }, [read.data])
  const isShut = read.problem?.status === 403 || (me.value !== undefined && isOwnOnly(me.value))
  const open = isShut ? [] : menu()
  const here = path.value
  // An effect after the paint would close a menu that the person has opened meanwhile.
  useLayoutEffect(() => setOpen(false), [here])
  return (
    <div class="frame">
      <a class="skip" href="#content">
        {nav.skip}
      </a>
      <header class="bar">
        <a class="brand" href="/console">
          <Gate />
          <span>Gatehouse</span>
        </a>
        <button
          type="button"
          class="menu-button"
          aria-expanded={isOpen}
          aria-controls="menu"
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name="menu" />
          <span class="unseen">{nav.menu}</span>
        </button>
        <div class={isOpen ? 'menu open' : 'menu'} id="menu">
          <button type="button" class="find" onClick={openPalette}>
            <Icon name="search" />
            <span>{words.palette.title}</span>
            <kbd>{words.palette.keys}</kbd>
          </button>
          <nav aria-label={nav.menu}>
            {open.map(([icon, title, href, , group], at) => (
              <a
                key={href}
                class={open[at - 1]?.[4] === group ? '' : 'apart'}
                href={href}
                aria-current={isWithin(href) ? 'page' : undefined}
              >
                <Icon name={icon} />
                {title}
              </a>
            ))}
          </nav>
          {who && (
            <a class="me" href="/account">
              <Avatar name={who.name} id={who.sub} />
              <span class="me-text">
                <span>{who.name}</span>
                <span class="hint">{nav.account}</span>
              </span>
            </a>
          )}
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {isShut ? (
          <Failure problem={{ status: 403, error: 'forbidden', error_description: '' }}>
            <button type="button" onClick={signInAnew}>
              {words.common.otherAccount}
            </button>
          </Failure>
        ) : (
          me.value && children
        )}
        {read.problem && !isShut && <Failure problem={read.problem} retry={read.reload} />}
      </main>
      <Toast />
      <RenewalDialog />
      <LastAdmin />
      <Leave />
      <Palette />
    </div>
  )
}
