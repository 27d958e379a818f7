import groovy.json.JsonSlurperClassic

/**
 * Runs a command of Lumos and returns its JSON report. Used by the other steps.
 *
 * The step fails if the command does. Its log goes to the log of the build.
 */
def call(List arguments, String configPath = null) {
    List words = ['lumos'] + arguments + ['--json']
    if (configPath) {
        words += ['--config', configPath]
    }
    return parse(sh(script: line(words), returnStdout: true, label: "lumos ${arguments[0]}"))
}

// Groovy's collections and JSON are not serialisable, so that pipelines cannot be paused in them.
@NonCPS
private static String line(List words) {
    return words.collect { "'" + it.toString().replace("'", "'\\''") + "'" }.join(' ')
}

@NonCPS
private static Map parse(String text) {
    return (Map) new JsonSlurperClassic().parseText(text)
}
