import { setUpChat } from './chat.js'
import { setUpCopyButtons } from './copy.js'
import { setUpProofChecks } from './proof.js'
import { setUpSections } from './sections.js'
import { setUpTimeSlider } from './travel.js'

setUpSections()
setUpCopyButtons()
setUpChat()
setUpTimeSlider()
setUpProofChecks()
