import type { OrganizationAnswer } from '#src/directory/organizations/schema.ts'
import { Field } from '../fields.tsx'
import { Card } from '../parts.tsx'
import { words } from '../words.ts'

type Settings = (typeof OrganizationAnswer)['_output']['settings']
type Terms = NonNullable<Settings['terms']>

/** Edits the terms of use that people accept. When all fields are empty, there are no terms. */
export const TermsSettings = (props: {
  settings: Settings
  onChange(change: Pick<Settings, 'terms'>): void
}) => {
  const { settings, onChange } = props
  const { version = '', text, url } = settings.terms ?? {}
  const change = (given: Partial<Terms>) => {
    const next = { version, text: text || null, url: url || null, ...given }
    onChange({ terms: next.version || next.text || next.url ? next : null })
  }
  return (
    <Card title={words.organization.accepted} lead={words.organization.acceptedLead}>
      <Field
        name="settings.terms.version"
        label={words.organization.acceptedVersion}
        hint={words.organization.acceptedVersionHint}
        autocomplete="off"
        value={version}
        onValue={value => change({ version: value })}
      />
      <Field
        name="settings.terms.text"
        label={words.organization.acceptedText}
        multiline={6}
        value={text ?? ''}
        onValue={value => change({ text: value || null })}
      />
      <Field
        name="settings.terms.url"
        label={words.organization.acceptedUrl}
        autocomplete="off"
        spellcheck={false}
        value={url ?? ''}
        onValue={value => change({ url: value || null })}
      />
    </Card>
  )
}
