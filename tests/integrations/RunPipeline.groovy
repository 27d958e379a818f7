// Runs a pipeline with the shared library in a folder: `sh` runs commands, `echo` prints.
//
// Arguments: the folder with the library as lumos@main, the folder to work in, the pipeline.
// The directives of declarative pipelines are methods that run their blocks in order.

import com.lesfurets.jenkins.unit.cps.BasePipelineTestCPS

import static com.lesfurets.jenkins.unit.global.lib.LibraryConfiguration.library
import static com.lesfurets.jenkins.unit.global.lib.LocalSource.localSource

class PipelineRun extends BasePipelineTestCPS {
    File folder
    Map environment = [:]

    String run(String command, boolean captures) {
        def builder = new ProcessBuilder('sh', '-c', command).directory(folder)
        builder.environment().putAll(environment.collectEntries { [(it.key): it.value.toString()] })
        builder.redirectError(ProcessBuilder.Redirect.INHERIT)
        def process = builder.start()
        def output = process.inputStream.getText('UTF-8')
        if (process.waitFor() != 0) {
            throw new IllegalStateException("script returned exit code ${process.exitValue()}")
        }
        if (!captures) {
            print output
        }
        return captures ? output : null
    }

    void start(String libraries, String script) {
        setScriptRoots([new File(script).parent] as String[])
        setUp()
        binding.setVariable('any', 'any')
        binding.setVariable('env', environment)
        helper.registerAllowedMethod('sh', [Map], { Map given -> run(given.script, given.returnStdout == true) })
        helper.registerAllowedMethod('sh', [String], { String command -> run(command, false) })
        helper.registerAllowedMethod('echo', [String], { String text -> println "echo: ${text}" })
        helper.registerAllowedMethod('error', [String], { String text -> throw new IllegalStateException(text) })
        helper.registerAllowedMethod('agent', [Object], { })
        for (name in ['pipeline', 'stages', 'steps', 'script', 'success', 'always']) {
            helper.registerAllowedMethod(name, [Closure], { Closure body -> helper.callClosure(body) })
        }
        helper.registerAllowedMethod('failure', [Closure], { })
        helper.registerAllowedMethod('post', [Closure], { Closure body -> helper.callClosure(body) })
        helper.registerAllowedMethod('environment', [Closure], { Closure body ->
            def before = binding.variables.keySet().toList()
            helper.callClosure(body)
            environment.putAll(binding.variables.findAll { !(it.key in before) })
        })
        helper.registerSharedLibrary(
            library().name('lumos').retriever(localSource(libraries)).targetPath(libraries)
                .defaultVersion('main').allowOverride(true).implicit(true).build())
        runScript(new File(script).name)
    }
}

def (libraries, folder, script) = args
new PipelineRun(folder: new File(folder)).start(libraries, script)
