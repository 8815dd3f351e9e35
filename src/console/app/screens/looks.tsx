import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { OrganizationAnswer } from '#src/directory/organizations/schema.ts'
import { asProblem, callApi, type Problem, readText } from '../api.ts'
import { Choice, Field } from '../fields.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useObject, useSettled } from '../hooks.ts'
import { may } from '../me.ts'
import { Card, Failure, Heading, Loading } from '../parts.tsx'
import { PictureField } from '../picture-field.tsx'
import { UnloadedCard } from '../unloaded.tsx'
import { words } from '../words.ts'

type Organization = (typeof OrganizationAnswer)['_output']
type Settings = Organization['settings']

const text = words.looks

const looks = [
  'theme',
  'accent_color',
  'logo',
  'logo_dark',
  'custom_css',
  'terms_url',
  'privacy_url',
  'support_url',
] as const

/** Built-in themes with their names, which are the same in each language. */
const themes = { default: 'Gatehouse', graphite: 'Graphite', evergreen: 'Evergreen', ember: 'Ember' }
/** Value of the option "A theme of the data directory". It is empty, because no theme has an empty name. */
const OWN = ''
const ACCENT = '#2b50d8'

const FRAME = 'looks'
const PAGE = '/console/preview'

/**
 * Shows the login page in a frame. A form posts the unsaved appearance into the frame, because the console's
 * policy (Trusted Types) prevents scripts from inserting markup. The frame is `inert`, so that the fields and
 * buttons of the preview do nothing.
 */
const Preview = (props: { organization: Organization; onProblem(problem: Problem | undefined): void }) => {
  const { id, display_name, settings } = props.organization
  const form = useRef<HTMLFormElement>(null)
  const [sealed, setSealed] = useState('')
  const wanted = useSettled(
    JSON.stringify({
      display_name,
      settings: Object.fromEntries(looks.map(name => [name, settings[name] ?? null])),
    }),
    400,
  )
  useEffect(() => {
    let isCurrent = true
    callApi<{ looks: string }>('POST', `/organizations/${id}/preview`, { body: JSON.parse(wanted) })
      .then(({ data }) => {
        if (!isCurrent) return
        props.onProblem(undefined)
        setSealed(data.looks)
      })
      .catch(error => isCurrent && props.onProblem(asProblem(error)))
    return () => {
      isCurrent = false
    }
  }, [wanted])
  useEffect(() => {
    if (sealed !== '') form.current?.submit()
  }, [sealed])
  return (
    <Card title={text.preview} lead={text.previewLead}>
      <iframe
        class="preview"
        name={FRAME}
        title={text.preview}
        sandbox="allow-same-origin"
        tabIndex={-1}
        inert
      />
      <form ref={form} method="post" action={PAGE} target={FRAME} hidden>
        <input type="hidden" name="looks" value={sealed} />
      </form>
    </Card>
  )
}

/**
 * Edits the CSS of the pages as text. The API answers with the URL of the stylesheet, so the text is read
 * from that URL.
 */
const StyleField = (props: { value: string | null | undefined; onValue(css: string | null): void }) => {
  const isStored = props.value?.startsWith('/assets/') ?? false
  const [read, setRead] = useState<{ url: string; css: string }>()
  const [problem, setProblem] = useState<Problem>()
  const load = () => {
    const url = props.value
    if (!isStored || !url) return
    setProblem(undefined)
    readText(url).then(
      css => setRead({ url, css }),
      error => setProblem(asProblem(error)),
    )
  }
  useEffect(load, [isStored, props.value])
  if (isStored && problem) return <Failure problem={problem} retry={load} />
  // After a save the stylesheet has a new URL, whose text is not read yet.
  const stored = read?.url === props.value ? read?.css : undefined
  if (isStored && stored === undefined) return <Loading rows={2} />
  return (
    <Field
      name="settings.custom_css"
      label={text.css}
      hint={text.cssHint}
      multiline={8}
      spellcheck={false}
      value={(isStored ? stored : props.value) ?? ''}
      onValue={css => props.onValue(css.trim() === '' ? null : css)}
    />
  )
}

/**
 * Chooses a built-in theme. For a theme of the data directory, shows the children, which edit the name of the
 * theme. A new `key` resets the choice.
 */
const ThemeChoice = (props: {
  theme: string
  onTheme(theme: string | null): void
  children: ComponentChildren
}) => {
  const { theme, onTheme } = props
  const [isOwn, setOwn] = useState(!Object.hasOwn(themes, theme))
  return (
    <>
      <Choice
        label={text.theme}
        name="settings.theme"
        value={isOwn ? OWN : theme}
        options={[...Object.entries(themes), [OWN, text.themeOther]]}
        onValue={value => {
          setOwn(value === OWN)
          if (value !== OWN) onTheme(value === 'default' ? null : value)
        }}
      />
      {isOwn && props.children}
    </>
  )
}

const Form = ({ organization, loaded }: { organization: Organization; loaded: Loaded<Organization> }) => {
  const path = `/organizations/${organization.id}`
  const edit = useEdit<Organization>(path, organization, loaded.etag, loaded)
  const [refused, setRefused] = useState<Problem>()
  const { values, set } = edit
  const { settings } = values
  const choose = (change: Partial<Settings>) => set({ settings: { ...settings, ...change } })
  type Text = 'theme' | 'accent_color' | 'terms_url' | 'privacy_url' | 'support_url'
  const field = (name: Text, label: string, hint: string) => (
    <Field
      name={`settings.${name}`}
      label={label}
      hint={hint}
      autocomplete="off"
      spellcheck={false}
      value={settings[name] ?? ''}
      onValue={value => choose({ [name]: value === '' ? null : value })}
    />
  )
  const picture = (name: 'logo' | 'logo_dark', label: string, hint: string) => (
    <PictureField
      name={`settings.${name}`}
      label={label}
      hint={hint}
      isDark={name === 'logo_dark'}
      value={settings[name]}
      onValue={value => choose({ [name]: value })}
    />
  )
  return (
    <div class="columns">
      <EditForm edit={{ ...edit, problem: edit.problem ?? refused }} path={path} stored={organization}>
        <Card title={text.colors}>
          <ThemeChoice
            key={edit.version}
            theme={settings.theme ?? 'default'}
            onTheme={theme => choose({ theme })}
          >
            {field('theme', text.themeName, '')}
          </ThemeChoice>
          <div class="with-color">
            {field('accent_color', words.organization.accent, words.organization.accentHint)}
            <input
              type="color"
              aria-label={words.organization.accent}
              value={settings.accent_color ?? ACCENT}
              onInput={event => choose({ accent_color: event.currentTarget.value })}
            />
          </div>
        </Card>
        <Card title={text.pictures}>
          {picture('logo', text.logo, text.logoHint)}
          {picture('logo_dark', text.logoDark, text.logoDarkHint)}
        </Card>
        <Card title={words.organization.pages} lead={text.linksLead}>
          {field('terms_url', words.organization.terms, words.organization.https)}
          {field('privacy_url', words.organization.privacy, words.organization.https)}
          {field('support_url', words.organization.help, words.organization.helpHint)}
        </Card>
        <Card title={text.style}>
          <StyleField value={settings.custom_css} onValue={custom_css => choose({ custom_css })} />
        </Card>
      </EditForm>
      {may('organizations:update') && (
        <div class="beside">
          <Preview organization={values} onProblem={setRefused} />
        </div>
      )}
    </div>
  )
}

/** Screen of the theme, colour, pictures, links and CSS of an organization's pages. */
export const LooksScreen = ({ id }: { id: string }) => {
  const loaded = useObject<Organization>(`/organizations/${encodeURIComponent(id)}`)
  const organization = loaded.data
  return (
    <>
      <Heading
        title={text.title}
        back={{
          href: `/console/organizations/${encodeURIComponent(id)}`,
          label: organization?.display_name ?? words.log.organization,
        }}
        lead={text.lead}
      />
      {organization ? <Form organization={organization} loaded={loaded} /> : <UnloadedCard loaded={loaded} />}
    </>
  )
}
